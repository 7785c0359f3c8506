//! Throw-away PostgreSQL servers, made by `initdb` in a temporary folder: one that all tests of a run share, and
//! servers of a test's own that it may stop, crash and promote. Whoever cannot have one fails loudly.
#![expect(clippy::panic, reason = "a test without its server must stop there")]

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Servers listen on sockets in their own folders, so any port will do.
const PORT: u16 = 5432;

/// The address of a database on the shared server, made when it is not there. The name says which tables it has:
/// pass the text that makes them, and databases of other versions are left alone.
///
/// `AOP_TEST_POSTGRES=postgres://user@host` names a server to use instead; databases are made there by `createdb`.
pub fn shared(schema: &str) -> String {
    let hash = schema.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let database = format!("aop_{hash:016x}");
    if let Ok(server) = std::env::var("AOP_TEST_POSTGRES") {
        let address = format!("{}/{database}", server.trim_end_matches('/'));
        // It may be there already; whether it is usable shows at once.
        let _ = Command::new(program("createdb")).args(["--maintenance-db", &server, &database]).output();
        return address;
    }
    let dir = std::env::temp_dir().join(format!("aop-test-postgres-{}", user()));
    let lock = File::create(dir.with_extension("lock")).unwrap_or_else(|error| panic!("{error}"));
    lock.lock().unwrap_or_else(|error| panic!("{error}"));
    let server = Server {
        dir: dir.clone(),
        settings: "-c fsync=off -c max_connections=300".into(),
        port: PORT,
        own: false,
    };
    if UnixStream::connect(dir.join(format!(".s.PGSQL.{PORT}"))).is_err() {
        // What an interrupted run may have left behind is of no use to anybody.
        let _ = fs::remove_dir_all(&dir);
        server.init();
        server.start();
        server.end_when_idle();
    }
    must(File::create(dir.join("used")), "used");
    let made = dir.join(format!("made-{database}"));
    if !made.exists() {
        server.run(
            "createdb",
            &["-h", &text(&dir), "-U", "aop", "--encoding", "UTF8", "-T", "template0", &database],
        );
        must(File::create(made), "made");
    }
    server.address(&database)
}

/// A server of a test's own. It ends with the test.
pub struct Server {
    dir: PathBuf,
    settings: String,
    port: u16,
    own: bool,
}

impl Server {
    /// A running server with these settings, as on a command line: `-c name=value`.
    pub fn own(settings: &str) -> Self {
        let server = Server { dir: fresh_dir(), settings: settings.into(), port: PORT, own: true };
        server.init();
        server.start();
        server
    }

    /// A running server that takes encrypted connections on 127.0.0.1 too, with a certificate that it signed itself;
    /// the address, and the file of the certificate.
    pub fn encrypted() -> (Self, String, PathBuf) {
        let free = must(std::net::TcpListener::bind("127.0.0.1:0"), "a port");
        let port = must(free.local_addr(), "a port").port();
        drop(free);
        let mut server = Server { dir: fresh_dir(), settings: String::new(), port, own: true };
        server.init();
        let (cert, key) = (server.dir.join("cert.pem"), server.dir.join("key.pem"));
        let mut make = as_somebody(Path::new("openssl"));
        make.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        make.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"]);
        make.arg("-out").arg(&cert).arg("-keyout").arg(&key).current_dir("/");
        assert!(must(make.output(), "openssl").status.success(), "openssl makes no certificate");
        server.settings = format!(
            "-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_cert_file={} -c ssl_key_file={}",
            cert.display(),
            key.display()
        );
        server.start();
        (server, format!("postgres://aop@localhost:{port}"), cert)
    }

    /// A standby that follows this server from now on, under this name.
    pub fn standby(&self, name: &str) -> Self {
        let standby = Server { dir: fresh_dir(), settings: self.settings.clone(), port: PORT, own: true };
        make_dir(&standby.dir);
        let conninfo = format!("host={} user=aop application_name={name}", self.dir.display());
        let data = text(&standby.data());
        standby.run("pg_basebackup", &["-d", &conninfo, "-D", &data, "-R", "-X", "stream", "-c", "fast"]);
        standby.start();
        standby
    }

    /// The address of a database on it.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://aop@{}:{}/{database}", text(&self.dir).replace('/', "%2F"), self.port)
    }

    /// The folder that its socket stands in.
    pub fn socket(&self) -> &Path {
        &self.dir
    }

    /// From now on this role has to give its password.
    pub fn demand_passwords(&self, role: &str) {
        let rules = format!("local all {role} scram-sha-256\nlocal all all trust\n");
        must(fs::write(self.data().join("pg_hba.conf"), rules), "pg_hba.conf");
        // Nobody says when rules that are only read again are in force.
        self.stop();
        self.start();
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        let options =
            format!("-k {} -p {} -c listen_addresses= {}", self.dir.display(), self.port, self.settings);
        let (data, log) = (text(&self.data()), text(&self.dir.join("log")));
        self.run("pg_ctl", &["start", "-w", "-t", "60", "-D", &data, "-l", &log, "-o", &options]);
    }

    /// Stops it as an administrator would.
    pub fn stop(&self) {
        self.run("pg_ctl", &["stop", "-w", "-m", "fast", "-D", &text(&self.data())]);
    }

    /// Stops it without any farewell: no checkpoint, every connection cut.
    pub fn crash(&self) {
        self.run("pg_ctl", &["stop", "-w", "-m", "immediate", "-D", &text(&self.data())]);
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.run("pg_ctl", &["promote", "-w", "-D", &text(&self.data())]);
    }

    /// Runs SQL as the superuser; what `psql` prints, unaligned.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.run(
            "psql",
            &[
                "-p",
                &self.port.to_string(),
                "-h",
                &text(&self.dir),
                "-U",
                "aop",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-Atc",
                sql,
            ],
        )
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn init(&self) {
        make_dir(&self.dir);
        let data = text(&self.data());
        self.run(
            "initdb",
            &["--no-sync", "-A", "trust", "-U", "aop", "-E", "UTF8", "--locale=C", "-D", &data],
        );
    }

    /// Runs one of PostgreSQL's programs as a user that it accepts.
    fn run(&self, name: &str, args: &[&str]) -> String {
        let mut command = as_somebody(&program(name));
        let output = command.args(args).current_dir("/").stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {args:?} failed: {said}\nthe server's log:\n{log}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// A watchman of its own process group ends the shared server some minutes after the last test used it.
    fn end_when_idle(&self) {
        let dir = text(&self.dir);
        let stop = as_somebody(&program("pg_ctl"));
        let words = std::iter::once(stop.get_program()).chain(stop.get_args());
        let stop: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let script = format!(
            "while sleep 20; do [ -d {dir} ] || exit 0; [ -n \"$(find {dir}/used -mmin -5)\" ] && continue; \
             exec flock {dir}.lock sh -c '{} stop -m immediate -D {dir}/data; rm -rf {dir}'; done",
            stop.join(" ")
        );
        let null = Stdio::null;
        // `--fork` leaves nobody behind to be waited for.
        let mut watchman = Command::new("setsid");
        watchman
            .args(["--fork", "sh", "-c", &script])
            .current_dir("/")
            .stdin(null())
            .stdout(null())
            .stderr(null());
        must(watchman.status(), "setsid");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.own {
            let data = text(&self.data());
            let mut stop = as_somebody(&program("pg_ctl"));
            let _ = stop.args(["stop", "-m", "immediate", "-D", &data]).current_dir("/").output();
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// The programs of the newest installed server.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin").join(name)).collect();
    versions.retain(|path| path.exists());
    versions.sort_by_key(|path| version(path));
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.exists())
    };
    versions.pop().or_else(on_path).unwrap_or_else(|| {
        panic!("PostgreSQL's `{name}` is not installed: run `apt-get install -y postgresql`, or leave these tests out with `cargo xtask test --quick`")
    })
}

fn version(path: &Path) -> u32 {
    path.iter().rev().find_map(|part| part.to_str()?.parse().ok()).unwrap_or_default()
}

/// A command that does not run as root, which PostgreSQL refuses.
fn as_somebody(program: &Path) -> Command {
    if user() != 0 {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    must(fs::metadata("/proc/self"), "/proc/self").uid()
}

/// A folder that the server's user may write.
fn make_dir(dir: &Path) {
    must(fs::create_dir_all(dir), "folder");
    if user() == 0 {
        let owned = Command::new("chown").arg("postgres").arg(dir).status();
        assert!(must(owned, "chown").success(), "there is no user postgres: install Debian's postgresql");
    }
}

/// A folder with a short name: a socket's path may have no more than 107 characters.
fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("aop-pg-{}-{number}", std::process::id()))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn must<T>(result: std::io::Result<T>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}
