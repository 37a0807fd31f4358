use proptest::prelude::*;

use super::*;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::In), Just(Direction::Out), Just(Direction::Stderr)]
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were(
        first in 0u64..1 << 40,
        frames in prop::collection::vec(
            (direction(), any::<i64>(), prop::collection::vec(any::<u8>(), 0..300)),
            0..50,
        ),
    ) {
        let mut buffer = FrameBuf::new(FrameNo(first));
        for (dir, ts, bytes) in &frames {
            buffer.append(*dir, Timestamp::from_millis(*ts), bytes);
        }
        prop_assert_eq!(buffer.len(), frames.len() as u64);
        let mut read = buffer.iter();
        for (n, (dir, ts, bytes)) in frames.iter().enumerate() {
            let ts = Timestamp::from_millis(*ts);
            let no = FrameNo(first + n as u64);
            prop_assert_eq!(read.next(), Some(FrameRef { no, ts, dir: *dir, bytes }));
        }
        prop_assert_eq!(read.next(), None);
        prop_assert!(read.is_spent());
    }

    #[test]
    fn any_bytes_can_be_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let n_bytes: usize = Frames::new(FrameNo(0), &bytes).map(|frame| frame.bytes.len()).sum();
        prop_assert!(n_bytes <= bytes.len());
    }
}

#[test]
fn buffers_can_be_joined_end_to_end() {
    let mut first = FrameBuf::new(FrameNo(1));
    first.append(Direction::In, Timestamp::from_millis(1000), b"a\n");
    first.append(Direction::Out, Timestamp::from_millis(1005), b"");
    let mut second = FrameBuf::new(first.next());
    second.append(Direction::Stderr, Timestamp::from_millis(7), b"c\r\n");
    let joined = [first.as_bytes(), second.as_bytes()].concat();
    let read: Vec<_> = Frames::new(FrameNo(1), &joined)
        .map(|frame| (frame.no.0, frame.ts.as_millis(), frame.dir, frame.bytes))
        .collect();
    assert_eq!(
        read,
        [
            (1, 1000, Direction::In, &b"a\n"[..]),
            (2, 1005, Direction::Out, b""),
            (3, 7, Direction::Stderr, b"c\r\n"),
        ]
    );
}
