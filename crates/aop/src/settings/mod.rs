//! Settings files of other programs, changed in place: one entry of ours goes in or out, and everything else stays as
//! it is, comments and layout included. A file that cannot be read is never written.

pub(crate) mod file;
pub(crate) mod jsonc;
pub(crate) mod toml;
