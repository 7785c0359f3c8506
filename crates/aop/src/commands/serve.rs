//! `aop serve`: the API, MCP, live events and pages over HTTP, for people in a browser and programs elsewhere.

use crate::cli::Global;
use crate::config::Switch;
use crate::number::millis_or;
use crate::open_files;
use crate::output::style::bold;
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, print, say, talk, warn};
use crate::project::Project;
use aop_engine::AOP_DIR;
use aop_server::{Ended, Ready, Serve, TlsFiles, serve_http};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Serve the API, MCP, live events and the dashboard over HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop serve --open                  opens the page that takes the printed link
  aop serve --listen 127.0.0.1:0    any free port; piped, the first line says it
  aop serve --listen 0.0.0.0:7417 --allow-host aop.lan \\
      --tls-cert chain.pem --tls-key key.pem
  curl -H \"Authorization: Bearer $TOKEN\" \\
      http://127.0.0.1:7417/api/v1/questions

At start it prints a login link; piped, one line with url, login_url and token. \
The token lives as long as the process; make lasting ones with \
`aop token create --kind operator --name NAME`. SIGTERM and Ctrl-C let requests finish first.")]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7417", value_parser = address)]
    listen: SocketAddr,
    /// Open the sign-in page in a browser
    #[arg(long)]
    open: bool,
    /// A name under which browsers may call this server, beside its addresses; repeatable
    #[arg(long, value_name = "NAME", value_parser = host)]
    allow_host: Vec<String>,
    /// Encrypt connections with this certificate (PEM, those above it after it); needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// How long waits last. Clients give up after a minute; tests want less.
    #[arg(long, hide = true, default_value_t = 50_000, env = "AOP_MCP_WAIT_MS", value_parser = millis_or(50_000))]
    wait_ms: u64,
    /// How long the head of a request may take, and an idle connection last.
    #[arg(long, hide = true, default_value_t = 15_000, env = "AOP_HEAD_MS", value_parser = millis_or(15_000))]
    head_ms: u64,
    /// How long a client may leave unread what it asked for.
    #[arg(long, hide = true, default_value_t = 30_000, env = "AOP_UNREAD_MS", value_parser = millis_or(30_000))]
    unread_ms: u64,
}

fn host(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write a name, like aop.lan".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address with a port, like 127.0.0.1:7417 or [::1]:7417".to_owned())
}

/// Serves until it is told to stop.
pub(crate) fn run(global: &Global, screen: &Screen, args: &ServeArgs) -> CommandResult {
    open_files::raise();
    let project = Project::find(global)?;
    let root = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    let name = root.file_name().map_or_else(|| "aop".to_owned(), |name| name.to_string_lossy().into_owned());
    let session = project.open_to_stay()?;
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
    if !args.listen.ip().is_loopback() && tls.is_none() {
        warn(&format!(
            "{} can be reached from other machines, and tokens and answers travel there unencrypted",
            args.listen
        ));
    }
    let files = (session.project.config.projections == Switch::On).then(|| session.project.dir());
    let folder = root.join(AOP_DIR);
    let ended = serve_http(Serve {
        folder,
        service: session.service,
        files,
        project: name,
        listen: args.listen,
        hosts: args.allow_host.clone(),
        tls,
        patience: Duration::from_millis(args.wait_ms),
        head_time: Duration::from_millis(args.head_ms),
        unread_time: Duration::from_millis(args.unread_ms),
        ready: match (screen.is_text(), args.open) {
            (true, true) => |ready| open(ready, told),
            (true, false) => told,
            (false, true) => |ready| open(ready, line),
            (false, false) => line,
        },
        warn,
    })?;
    Ok(match ended {
        Ended::Terminated => Reply::printed(),
        Ended::Interrupted => Reply::printed().exit(INTERRUPTED),
    })
}

/// For a program that listens.
fn line(ready: &Ready) {
    print(&json!({"url": ready.url, "login_url": ready.login_url, "token": ready.token}).to_string());
}

/// For a person.
fn told(ready: &Ready) {
    say(&format!("Serving on {}\n", bold(&ready.url)));
    say(&format!("Sign in:  {}\n", ready.login_url));
    say("The link is good until this process ends. Ctrl-C stops it.");
}

/// Opens the page that asks for the link: everybody on this machine can read the arguments of a program, and the link has
/// the token in it.
fn open(ready: &Ready, tell: fn(&Ready)) {
    tell(ready);
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command
        .arg(format!("{}/login", ready.url))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.spawn() {
        Ok(mut browser) => {
            talk("Paste the link into the page that opens: no other program is given it.");
            // Waited for in the background, so that it does not stay behind as a zombie.
            drop(std::thread::spawn(move || browser.wait()));
        }
        Err(error) => warn(&format!("no browser was opened ({opener}: {error}); use the link")),
    }
}
