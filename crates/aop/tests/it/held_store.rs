//! A process that does not let go of the store, and those that wait for it.

use crate::support::{Project, finish, wait};

#[test]
fn an_ask_that_waits_for_the_store_ends_when_it_is_told_to() {
    let project = Project::new();
    let lock = std::fs::File::options().read(true).write(true).open(project.path(".aop/write.lock")).unwrap();
    lock.lock().unwrap();
    for signal in ["-INT", "-TERM"] {
        let asking = project.spawn(&["ask", "Anybody?", "--timeout", "1s", "--operation-id", "mine"]);
        let threads = format!("/proc/{}/task", asking.id());
        let waits = || {
            let threads = std::fs::read_dir(&threads).unwrap().flatten();
            let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
            names.into_iter().any(|name| name == "aop-turn\n")
        };
        while !waits() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        finish(std::process::Command::new("kill").args([signal, &asking.id().to_string()]));
        let run = wait(asking);
        assert_eq!(run.code, Some(130), "{run:?}");
        let data = &run.envelope()["data"];
        assert!(run.stderr.contains("may be stored or not"), "{run:?}");
        assert_eq!(data["hint"], "run the same command with --operation-id mine", "{run:?}");
    }
}
