//! The run loop: features from specification to ready-to-merge around the questions of their agents.
