//! A page's talk with its engine, over a WebSocket.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use super::Shared;
use crate::engine::Engine;

/// The longest message of a client, in bytes.
const MESSAGE: usize = 1 << 20;

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
    socket.get_ref().set_read_timeout(None)?;
    let given = shared.given.iter().enumerate();
    let given: Vec<Value> =
        given.map(|(i, given)| json!({"given": i, "title": given.title})).collect();
    let version = env!("CARGO_PKG_VERSION");
    let hello = json!({"event": "hello", "version": version, "given": given, "export": false});
    socket.send(Message::text(hello.to_string()))?;
    let mut engine = Engine::with(shared.given.clone());
    loop {
        match socket.read()? {
            Message::Text(request) => socket.send(Message::text(engine.request(&request)))?,
            Message::Close(_) => return socket.flush(),
            _ => {}
        }
    }
}

/// Whether a message is the token. The time that this takes does not tell how much of it is right.
fn is_token(message: &Message, token: &str) -> bool {
    let Message::Text(text) = message else { return false };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let given = value["token"].as_str().unwrap_or_default().as_bytes();
    let apart = given.iter().zip(token.as_bytes()).fold(0, |apart, (a, b)| apart | (a ^ b));
    given.len() == token.len() && apart == 0
}
