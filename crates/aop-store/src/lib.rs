//! Durable storage.
