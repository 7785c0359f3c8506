//! What one turn of an engine means: streams to events, evidence to outcome, patches and command lines.
