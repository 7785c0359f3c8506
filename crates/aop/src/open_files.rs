//! How many files a process may have open that has many turns or connections at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Room for all the connections that `aop serve` takes, and for the files of a project beside them.
const WANTED: u64 = 16_384;

/// Takes as many as the system lets it have.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED, |most| most.min(WANTED));
    if limit.current.is_some_and(|now| now < wanted) {
        // Where that is refused things stay as they are.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}
