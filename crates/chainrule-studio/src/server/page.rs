//! The page, as files in the program.

/// Paths and contents.
pub const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Shown where the page was not built.
const NONE: &[u8] = b"<!doctype html><meta charset=utf-8><title>chainrule</title>\
<p>This build of chainrule has no page: run npm run build in web/, and build again.";

/// The contents of a path of an address, and their type.
pub fn file(path: &str) -> Option<(&'static [u8], &'static str)> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((_, bytes)) => Some((bytes, kind(name))),
        None if FILES.is_empty() && name == "index.html" => Some((NONE, kind(name))),
        None => None,
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
