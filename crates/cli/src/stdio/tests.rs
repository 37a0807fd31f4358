use std::fs::File;
use std::io::Write;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Readiness to read a FIFO stays with the runtime when its writers have hung up, also when another
/// one came after them.
#[tokio::test]
async fn a_fifo_ends_when_its_writers_hang_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Opened for both, it waits for nobody.
    let both = File::options().read(true).write(true).open(&path).unwrap();
    let reader = File::open(&path).unwrap();
    let mut writer = File::options().write(true).open(&path).unwrap();
    drop(both);
    let mut input = Input { fd: watch(reader.into()).unwrap() };
    writer.write_all(b"a").unwrap();
    drop(writer);
    let mut heard = [0; 8];
    assert_eq!(timeout(PATIENCE, input.read(&mut heard)).await.unwrap().unwrap(), 1);
    let _next = File::options().write(true).open(&path).unwrap();
    assert_eq!(timeout(PATIENCE, input.read(&mut heard)).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn what_comes_later_is_waited_for() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut input = Input { fd: watch(reader.into()).unwrap() };
    let mut heard = [0; 8];
    for _ in 0..3 {
        let nothing = timeout(Duration::from_millis(20), input.read(&mut heard)).await;
        nothing.unwrap_err();
        writer.write_all(b"abc").unwrap();
        assert_eq!(timeout(PATIENCE, input.read(&mut heard)).await.unwrap().unwrap(), 3);
    }
    drop(writer);
    assert_eq!(timeout(PATIENCE, input.read(&mut heard)).await.unwrap().unwrap(), 0);
}
