//! The SSE decoder on its own (checklist 27, 28): text in, items out, cut in
//! two at every byte.

use hermitcrab::llm::{SseDecoder, SseItem};

fn items(pieces: &[&[u8]]) -> Vec<String> {
    let mut decoder = SseDecoder::new();
    let mut found = Vec::new();
    let mut note = |item: SseItem<'_>| {
        found.push(match item {
            SseItem::Event { event, data } => format!("{event}|{data}"),
            SseItem::Json(json) => format!("json {json}"),
            SseItem::TooLong => "too long".to_owned(),
        });
    };
    for piece in pieces {
        decoder.feed(piece, &mut note);
    }
    decoder.finish(&mut note);
    found
}

fn check(stream: &[u8], expected: &[&str]) {
    for cut in 0..=stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(items(&[head, tail]), expected, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(items(&bytes), expected, "byte by byte");
}

#[test]
fn event_and_data() {
    check(b"event: a\ndata: 1\n\ndata: 2\n\n", &["a|1", "|2"]);
}

#[test]
fn line_ends() {
    check(
        b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n",
        &["|1", "|2", "|3"],
    );
}

#[test]
fn several_data_lines() {
    check(b"data: 1\ndata\ndata:  2\n\n", &["|1\n\n 2"]);
    check(b"data: 1\r\ndata: 2\r\n\r\n", &["|1\n2"]);
}

#[test]
fn only_one_space_is_stripped() {
    check(b"data:x\n\ndata:  x\n\n", &["|x", "| x"]);
}

#[test]
fn comments_and_unknown_fields() {
    check(b": hi\nid: 1\nretry: 2\nother: 3\ndata: x\n:\n\n", &["|x"]);
}

#[test]
fn byte_order_mark() {
    check("\u{feff}data: x\n\n".as_bytes(), &["|x"]);
    check("data: \u{feff}x\n\n".as_bytes(), &["|\u{feff}x"]);
    check("data: 1\n\u{feff}data: 2\n\n".as_bytes(), &["|1"]);
}

#[test]
fn characters_of_many_bytes() {
    check("data: héllo 👋\n\n".as_bytes(), &["|héllo 👋"]);
}

#[test]
fn bytes_that_are_no_text() {
    check(b"data: a\xffb\n\n", &["|a\u{fffd}b"]);
}

#[test]
fn last_event_without_blank_line() {
    check(b"data: x", &["|x"]);
    check(b"data: x\n", &["|x"]);
}

#[test]
fn an_event_without_data_is_nothing() {
    check(b"event: a\n\ndata: x\n\n", &["|x"]);
}

#[test]
fn bare_json() {
    check(
        b"[{\n  \"error\": {\"message\": \"a \\\" ]} b\",\n\n  \"code\": 503}\n}\n]\ndata: x\n\n",
        &[
            "json [{\n  \"error\": {\"message\": \"a \\\" ]} b\",\n  \"code\": 503}\n}\n]",
            "|x",
        ],
    );
}

#[test]
fn bare_json_that_never_closes() {
    check(b"{\n\"a\": 1\n\ndata: x\n\n", &["|x"]);
}

#[test]
fn a_page_is_no_stream() {
    let mut decoder = SseDecoder::new();
    decoder.feed(b"\n<html>\n<b>x</b>\n", |item| panic!("{item:?}"));
    decoder.finish(|item| panic!("{item:?}"));
    assert_eq!(decoder.first_stray_line(), "<html>");
}

#[test]
fn an_endless_line_is_dropped() {
    let mut decoder = SseDecoder::new();
    let mut too_long = 0;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..66 {
        decoder.feed(&piece, |item| {
            assert_eq!(item, SseItem::TooLong);
            too_long += 1;
        });
    }
    assert_eq!(too_long, 1);
}
