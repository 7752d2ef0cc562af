//! The floor of `cargo xtask bench`: a bare loop that does what no agent can
//! leave out. It posts a growing conversation, reads the stream to its end,
//! runs the shell, and starts again. No JSON library, no events, no checks.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

/// Where the scripted model is.
#[derive(Args)]
pub(crate) struct Options {
    /// Its URL, `http://127.0.0.1:PORT`.
    url: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let address = options
        .url
        .strip_prefix("http://")
        .context("the URL must begin with http://")?;
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut messages = String::from(r#"{"role":"user","content":[{"type":"text","text":"go"}]}"#);
    loop {
        let body = format!(
            r#"{{"model":"floor","max_tokens":100,"stream":true,"messages":[{messages}]}}"#
        );
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        writer.write_all(request.as_bytes())?;
        let answer = read_response(&mut reader)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some(id) = answer
            .split_once(r#""type":"tool_use","id":""#)
            .and_then(|(_, rest)| rest.split('"').next())
        else {
            return Ok(());
        };
        let output = Command::new("/bin/bash").args(["-c", "echo hi"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned();
        messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"shell","input":{{"command":"echo hi"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}"#
        ));
    }
}

/// Reads one HTTP/1.1 response and returns its body.
pub(crate) fn read_response(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut length = None;
    let mut chunked = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = Some(value.trim().parse::<usize>()?);
        }
        chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
        if line.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    if let Some(length) = length {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    } else if chunked {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16)
                .with_context(|| format!("not a chunk size: {line:?}"))?;
            let start = body.len();
            body.resize(start + size, 0);
            reader.read_exact(&mut body[start..])?;
            reader.read_line(&mut String::new())?;
            if size == 0 {
                break;
            }
        }
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok(body)
}
