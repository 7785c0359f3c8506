//! Named points at which tests make something go wrong, in builds with debug assertions; release builds have none.
//! `AOP_CRASH_AT=name` kills the process with SIGKILL right there, so that tests can prove what a crash at that point
//! leaves behind. `AOP_SLOW_AT=name` with `AOP_SLOW_MS` waits there, as a commit does on a disk that syncs slowly.

/// Dies or waits here when the environment says so.
#[inline]
pub fn crash_point(name: &str) {
    #[cfg(debug_assertions)]
    {
        let names_this =
            |variable: &str| std::env::var_os(variable).is_some_and(|wanted| wanted.to_str() == Some(name));
        if names_this("AOP_CRASH_AT") {
            // SIGKILL from a shell of its own: no destructor, no flush, no handler runs in this process.
            let kill = format!("kill -9 {}", std::process::id());
            let _ = std::process::Command::new("/bin/sh").args(["-c", &kill]).status();
            std::thread::park();
        }
        if names_this("AOP_SLOW_AT") {
            let millis = std::env::var("AOP_SLOW_MS").ok().and_then(|millis| millis.parse().ok());
            std::thread::sleep(std::time::Duration::from_millis(millis.unwrap_or(1_000)));
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
