//! JSON Schema checks for schemas that agents supply. Pure crates take these as functions.
