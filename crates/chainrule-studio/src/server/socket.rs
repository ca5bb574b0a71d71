//! A page's talk with its engine, over a WebSocket.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use super::Shared;
use crate::engine::{Engine, Reply};
use crate::live::Watcher;

/// The longest message of a client, in bytes: gradients by hand come as numbers in text.
const MESSAGE: usize = 8 << 20;

/// The wait for a request after which the page is told what is new: the rate at which runs are
/// shown, 20 times a second.
const LOOK: Duration = Duration::from_millis(50);

/// Answers requests until the page leaves. The first message must be the token.
pub fn talk(mut stream: TcpStream, key: &str, shared: &Shared) -> Result<(), Error> {
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.set_read_timeout(Some(shared.patience))?;
    let limits =
        WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(limits));
    let first = socket.read()?;
    if !is_token(&first, &shared.token) {
        socket.close(None)?;
        return socket.flush();
    }
    let given = shared.given.iter().enumerate();
    // The text goes along: the page runs what is typed beside it in an engine of its own.
    let given: Vec<Value> = given
        .map(|(i, given)| {
            json!({
                "given": i,
                "title": given.title,
                "source": given.captured.is_none().then_some(&given.text),
                "seed": given.seed,
                "hand": given.hand,
            })
        })
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    let hello = json!({"event": "hello", "version": version, "given": given, "export": false});
    socket.send(Message::text(hello.to_string()))?;
    socket.get_ref().set_read_timeout(Some(LOOK))?;
    let mut engine = Engine::closed(shared.given.clone());
    let mut watcher = shared.hub.watch();
    loop {
        match socket.read() {
            Ok(Message::Text(request)) => {
                let answer = match live(&watcher, &request) {
                    Some(answer) => Reply::Text(answer),
                    None => engine.reply(&request),
                };
                socket.send(match answer {
                    Reply::Text(text) => Message::text(text),
                    Reply::Bytes(bytes) => Message::binary(bytes),
                })?;
            }
            Ok(Message::Close(_)) => return socket.flush(),
            Ok(_) => {}
            Err(Error::Io(e)) if is_pause(&e) => {}
            Err(e) => return Err(e),
        }
        // A page that takes nothing for too long is dropped; the runs never wait for one.
        for event in watcher.news() {
            socket.send(Message::text(event.to_string()))?;
        }
    }
}

/// Whether a read ended because nothing came.
fn is_pause(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The answer to a request about a run of training; `None` for one to the engine.
fn live(watcher: &Watcher, request: &str) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    let call = request["call"].as_str().filter(|call| call.starts_with("live."))?;
    let id = &request["id"];
    let answer = match watcher.answer(call, &request["args"]) {
        Ok(ok) => json!({"id": id, "ok": ok}),
        Err(why) => json!({"id": id, "error": {"message": why, "line": null, "column": null}}),
    };
    Some(answer.to_string())
}

/// Whether a message is the token. The time that this takes does not tell how much of it is right.
fn is_token(message: &Message, token: &str) -> bool {
    let Message::Text(text) = message else { return false };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let given = value["token"].as_str().unwrap_or_default().as_bytes();
    let apart = given.iter().zip(token.as_bytes()).fold(0, |apart, (a, b)| apart | (a ^ b));
    given.len() == token.len() && apart == 0
}
