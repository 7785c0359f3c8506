//! A browser: Debian's chromium through chromedriver, spoken to in plain WebDriver. Headless, with a profile of its
//! own, ended with the test.

use crate::http_client::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What it is like to sit in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    Desk,
    WithoutScript,
}

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    base: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts one and signs in with the link that the server printed.
    pub(crate) fn signed_in(server: &Server, seat: Seat) -> Self {
        let browser = Browser::start(server, seat);
        browser.go(&server.login_url);
        browser.click("form button");
        browser.until_at("/");
        browser
    }

    fn start(server: &Server, seat: Seat) -> Self {
        let profile = TempDir::with_prefix("aop-browser-").unwrap();
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A group of its own, so that it can be ended with every browser it started.
        command.process_group(0).env("HOME", profile.path());
        let mut driver = command.spawn().unwrap_or_else(|error| {
            panic!("chromedriver does not start ({error}); `cargo xtask test-browser` installs it")
        });
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        // Whatever else it says is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let folder = format!("--user-data-dir={}", profile.path().join("profile").display());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--window-size=1280,900",
            &folder,
        ];
        let mut options = json!({"args": args});
        if seat == Seat::WithoutScript {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let wanted = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let mut browser = Browser {
            driver,
            port,
            session: String::new(),
            base: format!("http://{}", server.address),
            _profile: profile,
        };
        let opened = browser.call("POST", "/session", &json!({"capabilities": {"alwaysMatch": wanted}}));
        browser.session = format!("/session/{}", opened["sessionId"].as_str().unwrap());
        browser
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The driver keeps its connections, whatever is asked; its answers say how long they are.
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "chromedriver hung up: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().to_owned();
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let length = lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case("content-length")).unwrap().1;
        let mut body = vec![0; length.trim().parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        let value = answer["value"].take();
        if status == "200" { Ok(value) } else { Err(value) }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("{}{path}", self.session), body)
    }

    /// Opens a path of the server, or a whole address.
    pub(crate) fn go(&self, place: &str) {
        let url = if place.starts_with("http") { place.to_owned() } else { format!("{}{place}", self.base) };
        self.ask("POST", "/url", &json!({"url": url}));
        // On a busy machine the driver may be back before the style sheet and the script are there.
        self.until("all is loaded", |browser| browser.script("return document.readyState") == "complete");
    }

    /// The path of the page that is shown.
    pub(crate) fn at(&self) -> String {
        let url = self.ask("GET", "/url", &Value::Null);
        url.as_str().unwrap().trim_start_matches(&self.base).to_owned()
    }

    fn find(&self, selector: &str) -> Result<String, Value> {
        let path = format!("{}/element", self.session);
        let found = self.try_call("POST", &path, &json!({"using": "css selector", "value": selector}))?;
        Ok(found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned())
    }

    fn element(&self, selector: &str) -> String {
        self.find(selector).unwrap_or_else(|error| panic!("{selector}: {error}\n{}", self.text("body")))
    }

    pub(crate) fn has(&self, selector: &str) -> bool {
        self.find(selector).is_ok()
    }

    pub(crate) fn click(&self, selector: &str) {
        let id = self.element(selector);
        self.ask("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Types into an element.
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        let id = self.element(selector);
        self.ask("POST", &format!("/element/{id}/value"), &json!({"text": text}));
    }

    /// What a person reads there.
    pub(crate) fn text(&self, selector: &str) -> String {
        let Ok(id) = self.find(selector) else { return String::new() };
        let path = format!("{}/element/{id}/text", self.session);
        // An element that was replaced in this moment has no text any more.
        self.try_call("GET", &path, &Value::Null)
            .ok()
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// What stands in a field.
    pub(crate) fn value(&self, selector: &str) -> String {
        let id = self.element(selector);
        let value = self.ask("GET", &format!("/element/{id}/property/value"), &Value::Null);
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Presses keys with nothing in particular in focus.
    pub(crate) fn press(&self, keys: &str) {
        let presses = keys.chars().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let actions =
            json!({"actions": [{"type": "key", "id": "keys", "actions": presses.collect::<Vec<_>>()}]});
        self.ask("POST", "/actions", &actions);
    }

    pub(crate) fn script(&self, code: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({"script": code, "args": []}))
    }

    pub(crate) fn devtools(&self, command: &str, params: &Value) -> Value {
        self.ask("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Opens another window and looks at it; the one before.
    pub(crate) fn another_window(&self) -> String {
        let before = self.ask("GET", "/window", &Value::Null).as_str().unwrap().to_owned();
        let opened = self.ask("POST", "/window/new", &json!({"type": "window"}));
        self.look_at(opened["handle"].as_str().unwrap());
        before
    }

    pub(crate) fn look_at(&self, window: &str) {
        self.ask("POST", "/window", &json!({"handle": window}));
    }

    /// Waits until it holds; a page takes its time.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < end, "never: {what}\nat {}\n{}", self.at(), self.text("body"));
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    pub(crate) fn until_at(&self, path: &str) {
        self.until(&format!("at {path}"), |browser| browser.at() == path);
    }

    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} reads {text:?}"), |browser| browser.text(selector).contains(text));
    }

    /// Everything the browser complained about: scripts that failed, what the content policy refused.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Keeps a picture of the whole page below `target/screenshots`.
    pub(crate) fn picture(&self, name: &str) {
        use std::process::Stdio;
        let folder = target().join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let size = self.devtools("Page.getLayoutMetrics", &json!({}))["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap_or(900.0).min(3_000.0);
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1});
        let shot =
            self.devtools("Page.captureScreenshot", &json!({"captureBeyondViewport": true, "clip": clip}));
        let file = std::fs::File::create(folder.join(format!("{name}.png"))).unwrap();
        let mut decode = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
        decode.stdin.take().unwrap().write_all(shot["data"].as_str().unwrap().as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
    }

    /// Nothing sticks out of the window to the side.
    pub(crate) fn assert_fits(&self, where_: &str) {
        let widths = self.script("return [document.documentElement.scrollWidth, innerWidth]");
        let (page, window) = (widths[0].as_u64().unwrap(), widths[1].as_u64().unwrap());
        assert!(page <= window, "{where_}: the page is {page} wide, the window {window}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.driver.id());
        let _ = self.try_call("DELETE", &self.session, &Value::Null);
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.driver.wait();
    }
}

/// Where cargo puts what it builds: the binary is two folders below.
fn target() -> PathBuf {
    let binary = PathBuf::from(crate::support::binary());
    binary.ancestors().nth(2).unwrap().to_owned()
}
