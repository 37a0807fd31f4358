use std::fs::File;
use std::io::{Read, pipe};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;

fn line(number: usize, len: usize) -> Vec<u8> {
    let mut line = format!("{number} {}", "x".repeat(len)).into_bytes();
    line.push(b'\n');
    line
}

/// Lines of all lengths, some past the thread and some through it.
fn push_all(outbox: &Outbox) -> Vec<u8> {
    let mut expected = Vec::new();
    for number in 0..3000 {
        let mut line = line(number, [3, 900, PIPE_BUF, 40][number % 4]);
        expected.extend_from_slice(&line);
        outbox.push(&mut line);
        assert!(line.is_empty());
    }
    outbox.finish();
    expected
}

fn file(pipe: impl Into<OwnedFd>) -> File {
    File::from(pipe.into())
}

#[test]
fn a_slow_client_gets_every_line_in_order() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (from_pipe, to_pipe) = pipe().unwrap();
    for (output, mut input) in [(file(to_pipe), file(from_pipe)), (file(ours), file(theirs))] {
        let (outbox, thread) = Outbox::new("test", output).unwrap();
        let reader = std::thread::spawn(move || {
            let (mut heard, mut buffer) = (Vec::new(), [0; 5000]);
            loop {
                match input.read(&mut buffer).unwrap() {
                    0 => return heard,
                    n => heard.extend_from_slice(&buffer[..n]),
                }
                if heard.len() % 7 == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
        });
        let expected = push_all(&outbox);
        thread.join().unwrap().unwrap();
        drop(outbox);
        assert!(reader.join().unwrap() == expected);
    }
}

#[test]
fn a_line_for_a_client_that_keeps_up_needs_no_thread() {
    let (mut reader, writer) = pipe().unwrap();
    // Without a thread nobody else would write.
    let direct = Direct::new(writer.as_fd()).unwrap();
    let outbox = Outbox { inner: Arc::new(Inner { direct, ..Inner::default() }) };
    outbox.push(&mut b"one\n".to_vec());
    outbox.push(&mut b"two\n".to_vec());
    let mut heard = [0; 8];
    reader.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"one\ntwo\n");
}

#[test]
fn a_push_never_waits_for_a_client_that_does_not_read() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (from_pipe, to_pipe) = pipe().unwrap();
    let outputs = [(file(to_pipe), file(from_pipe)), (file(ours), file(theirs))];
    for (output, client) in outputs {
        let (outbox, thread) = Outbox::new("test", output).unwrap();
        push_all(&outbox);
        assert!(outbox.inner.lock().lines.len() > SOFT);
        drop(client);
        thread.join().unwrap().unwrap_err();
        // Nobody will read this, and nothing is kept of it.
        outbox.push(&mut line(0, 10));
        assert!(outbox.inner.lock().lines.is_empty());
    }
}

#[test]
fn a_file_is_left_to_the_thread() {
    let file = tempfile::tempfile().unwrap();
    assert!(Direct::new(file.as_fd()).unwrap().is_none());
}
