//! Where a newcomer starts: an empty home on this machine, or a Debian that has just been installed into a folder.

use crate::packages::{self, Need};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What makes a Debian in a folder.
const DEBOOTSTRAP: &[Need] = &[("debootstrap", || Path::new("/usr/sbin/debootstrap").exists())];

/// The release that it is.
const SUITE: &str = "bookworm";

/// A folder for everything, gone when this ends.
pub(super) struct Fresh {
    pub(super) folder: PathBuf,
}

impl Fresh {
    pub(super) fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("aop-newcomer-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Fresh { folder })
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // Nothing is mounted below it where this runs; should there be, it stays. What is left is in the temporary
        // folder of the system.
        let _ = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.folder).status();
    }
}

/// Where commands run.
pub(super) enum Place {
    /// With this home, and the programs of this machine.
    Home(PathBuf),
    /// In this root, as root.
    Debian(PathBuf),
}

/// In a Debian of one's own: the newcomer's home, where Rust is seen, and where everything else is.
const HOME: &str = "home/newcomer";
const RUST: &str = "opt/rust";
const SYSTEM: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes a folder the root and runs a command there. Unlike with chroot, the system below cannot tell: programs can
/// make namespaces of their own, as tests with disks of their own do.
const ENTER: &str = r#"cd "$0"; pivot_root . mnt; /bin/umount -l mnt; exec "$@""#;

impl Place {
    /// A path below the home, as this machine sees it.
    pub(super) fn home(&self, below: &str) -> PathBuf {
        match self {
            Place::Home(home) => home.join(below),
            Place::Debian(root) => root.join(HOME).join(below),
        }
    }

    /// A shell in a folder below the home, with nothing but a search path, the toolchain and that home.
    pub(super) fn shell(&self, below: &str, script: &str) -> Result<Command> {
        let mut command = match self {
            Place::Home(home) => {
                let path = std::env::var("PATH").context("PATH")?;
                let rust = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
                let rust = rust.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
                let mut command = Command::new("sh");
                command
                    .env_clear()
                    .env("PATH", format!("{}/.cargo/bin:{path}", home.display()))
                    .env("HOME", home);
                command.envs(rust.map(|rust| ("RUSTUP_HOME", rust)));
                command.current_dir(home.join(below));
                command
            }
            Place::Debian(root) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-eu", "-c", ENTER]).arg(root);
                command.args(["/usr/bin/env", "-i", "--chdir", &format!("/{HOME}/{below}")]);
                command.args(["LANG=C.UTF-8", &format!("HOME=/{HOME}")]);
                command.arg(format!("PATH=/{HOME}/.cargo/bin:/{RUST}/bin:{SYSTEM}")).arg("sh");
                command
            }
        };
        command.args(["-eu", "-c", script]).stdin(Stdio::null());
        Ok(command)
    }
}

/// Installs a Debian without anything that it can do without.
pub(super) fn debian(folder: &Path) -> Result<()> {
    packages::require(&[DEBOOTSTRAP])?;
    let mut make = Command::new("debootstrap");
    make.args(["--variant=minbase", SUITE]).arg(folder).stdout(Stdio::null());
    said(&mut make).context("debootstrap has to be root, with a network")
}

/// Gives it what a machine has by itself: processes, terminals, names, certificates; and Rust. Only to be called with
/// mounts of one's own.
pub(super) fn furnish(root: &Path) -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    let sysroot = String::from_utf8(sysroot.stdout)?;
    for folder in [HOME, RUST, "dev/pts", "dev/shm"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    let mount = |args: &[&str], at: &str| said(Command::new("mount").args(args).arg(root.join(at)));
    // Only what is mounted can become a root.
    let itself = root.display().to_string();
    mount(&["--bind", &itself], "")?;
    mount(&["-t", "proc", "proc"], "proc")?;
    mount(&["-t", "devpts", "-o", "ptmxmode=0666", "devpts"], "dev/pts")?;
    mount(&["-t", "tmpfs", "tmpfs"], "dev/shm")?;
    mount(&["--bind", "-o", "ro", sysroot.trim()], RUST)?;
    for file in ["etc/resolv.conf", "etc/hosts"] {
        std::fs::copy(Path::new("/").join(file), root.join(file)).context(file)?;
    }
    Ok(())
}

/// A machine behind a proxy of its own trusts more than Debian does.
pub(super) fn trust(root: &Path) {
    let bundle = "etc/ssl/certs/ca-certificates.crt";
    // Where there is no such file here, Debian's own is all there is.
    let _ = std::fs::copy(Path::new("/").join(bundle), root.join(bundle));
}

/// Runs it; an error when it fails.
pub(super) fn said(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
