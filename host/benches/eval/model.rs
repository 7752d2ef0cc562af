//! A model over loopback for a thousand sessions at once, in another process: what
//! it answers follows from how many tool results a request has.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;

/// First argument of the process.
pub(crate) const ARGUMENT: &str = "model";

/// The process; it ends with this.
pub(crate) struct Model {
    child: Child,
    pub(crate) url: String,
}

impl Model {
    /// One that answers with `rounds` calls, a command and an edit in turns, and a text.
    pub(crate) fn start(rounds: usize) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ARGUMENT, &rounds.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the model says nothing")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { child, url })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers until the process is killed.
pub(crate) async fn serve(rounds: usize) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            // A client that has gone needs no answer.
            let _ = answer_all(stream, rounds).await;
        });
    }
}

async fn answer_all(mut stream: TcpStream, rounds: usize) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    loop {
        let Some(request) = next_request(&mut stream, &mut bytes).await? else {
            return Ok(());
        };
        let done = memchr_count(&request, b"\"tool_result\"");
        let body = events(&answer(done, rounds));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
    }
}

/// The body of the next request.
async fn next_request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|text| text.lines().next()?.parse().ok());
            let length: usize = length.ok_or("a request without a length")?;
            while bytes.len() < end + 4 + length {
                if stream.read_buf(bytes).await? == 0 {
                    return Ok(None);
                }
            }
            let body = bytes[end + 4..end + 4 + length].to_vec();
            bytes.drain(..end + 4 + length);
            return Ok(Some(body));
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

fn memchr_count(text: &[u8], part: &[u8]) -> usize {
    text.windows(part.len()).filter(|at| *at == part).count()
}

/// What the model says behind `done` results.
pub(crate) fn answer(done: usize, rounds: usize) -> Value {
    match done {
        _ if done >= rounds => json!({"type": "text", "text": "done"}),
        0 => call(json!({"command": "echo 0 > a.txt"}), "shell"),
        _ if done.is_multiple_of(2) => call(json!({"command": "cat a.txt; ls | wc -l"}), "shell"),
        _ => call(
            json!({"file_path": format!("f{done}.txt"), "content": "one line\n".repeat(9)}),
            "write_file",
        ),
    }
}

fn call(input: Value, name: &str) -> Value {
    json!({"type": "tool_use", "id": "call", "name": name, "input": input})
}

/// The answer as Anthropic's API streams it.
fn events(block: &Value) -> String {
    let mut block = block.clone();
    let delta = match block["type"].as_str() {
        Some("text") => {
            json!({"type": "text_delta", "text": std::mem::replace(&mut block["text"], json!(""))})
        }
        _ => {
            let input = std::mem::replace(&mut block["input"], json!({}));
            json!({"type": "input_json_delta", "partial_json": input.to_string()})
        }
    };
    let stop = match block["type"].as_str() {
        Some("text") => "end_turn",
        _ => "tool_use",
    };
    let usage = json!({"input_tokens": 100, "output_tokens": 20});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [],
        "model": "m", "stop_reason": null, "usage": usage});
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    })
    .collect()
}
