//! Named crash points. In builds with debug assertions `AOP_CRASH_AT=name` kills the process with SIGKILL
//! right there, so that tests can prove what a crash at that point leaves behind. Release builds have none.

/// Dies here when the environment says so.
#[inline]
pub fn crash_point(name: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("AOP_CRASH_AT").is_some_and(|wanted| wanted.to_str() == Some(name)) {
        // SIGKILL from a shell of its own: no destructor, no flush, no handler runs in this process.
        let kill = format!("kill -9 {}", std::process::id());
        let _ = std::process::Command::new("/bin/sh").args(["-c", &kill]).status();
        std::thread::park();
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
