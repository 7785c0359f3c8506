//! Bytes that no engine should write and every engine has written, and many of them.

use super::{DONE, check, row, summary};
use crate::support::{claude, interactive, protocol, stream, turn};
use aop_turn::Engine;
use serde_json::json;

#[test]
fn odd_bytes() {
    let crlf = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace('\n', "\r\n").into_bytes();
    let mut rows = Vec::new();
    for &engine in Engine::ALL {
        rows.push(row("CRLF", engine, crlf(turn(engine, DONE)), interactive(), summary()));
        let mut broken = b"\xff\xfe broken \x80 bytes\n".to_vec();
        broken.extend(turn(engine, DONE));
        rows.push(row("invalid UTF-8 before", engine, broken, interactive(), summary()));
        let mut nul = b"\0\0\0\n".to_vec();
        nul.extend(turn(engine, DONE));
        nul.extend(b"\0\0\0\0");
        let name = "NUL bytes around";
        rows.push(row(name, engine, nul, interactive(), summary()));
        let inside = turn(engine, &format!("caf\u{e9}\n{DONE}"));
        let place = inside.windows(2).position(|pair| pair == "é".as_bytes()).unwrap();
        let mut inside = inside;
        inside[place] = 0xff;
        rows.push(row("invalid UTF-8 inside the message", engine, inside, interactive(), summary()));
    }
    check(rows);
}

/// As long as a real one may get. Only its last message may matter, or cost memory.
#[test]
fn a_transcript_of_200_megabytes() {
    let mut reader = aop_turn::TurnReader::new(Engine::ClaudeCode);
    reader.feed(&stream(&[claude::init()]));
    let noise =
        stream(&[claude::tool_result("t", &format!("{DONE} {}", "lorem ipsum \" \\ ".repeat(60_000)))]);
    let mut length = 0;
    while length < 200 << 20 {
        reader.feed(&noise);
        length += noise.len();
    }
    reader.feed(&stream(&[claude::text("m", DONE), claude::done(DONE)]));
    let turn = reader.finish();
    assert!(turn.length > 200 << 20 && turn.sightings.len() <= 100);
    assert_eq!(protocol(&interactive().judge_turn(&turn))["final_data"], json!({"summary": "x"}));
}
