use std::collections::VecDeque;
use std::future::Future;
use std::task::{Context as Waker, Poll};

use tokio::sync::oneshot;

use super::*;

/// What becomes of an append.
enum Fate {
    Written,
    Refused,
    /// It is written when this is told, whoever waits for it.
    Later(oneshot::Receiver<()>),
}

/// A journal in memory, with a fate for each append; those after the last are written.
#[derive(Clone, Default)]
struct Book {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    pages: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Book {
    fn of(fates: impl IntoIterator<Item = Fate>) -> (Self, Scribe) {
        let book =
            Self { fates: Arc::new(Mutex::new(fates.into_iter().collect())), ..Self::default() };
        let scribe = Scribe::new(Arc::new(book.clone()), "s".to_owned());
        (book, scribe)
    }

    /// How many turns each roll-back in it takes back.
    fn pages(&self) -> Vec<u32> {
        let pages = self.pages.lock().unwrap();
        let read = pages.iter().map(|page| match serde_json::from_slice(page).unwrap() {
            Entry::RolledBack { turns } => turns,
            other => panic!("{other:?}"),
        });
        read.collect()
    }
}

impl Journal for Book {
    fn append(&self, _: &str, entries: Vec<Vec<u8>>) -> Journaled<()> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Written);
        let pages = Arc::clone(&self.pages);
        Box::pin(async move {
            match fate {
                Fate::Written => {}
                Fate::Refused => return Err(Failure::new(FailureCode::Store, "the disk is full")),
                Fate::Later(told) => told.await.unwrap(),
            }
            pages.lock().unwrap().extend(entries);
            Ok(())
        })
    }

    fn read(&self, _: &str) -> Journaled<Vec<Vec<u8>>> {
        let pages = self.pages.lock().unwrap().clone();
        Box::pin(async move { Ok(pages) })
    }
}

fn entry(turns: u32) -> Entry {
    Entry::RolledBack { turns }
}

#[tokio::test]
async fn a_refused_entry_is_written_with_the_next_ones_and_before_them() {
    let (book, mut scribe) = Book::of([Fate::Refused, Fate::Refused]);
    scribe.note(&entry(1));
    scribe.note(&entry(2));
    assert!(scribe.keep().await.is_err());
    scribe.note(&entry(3));
    assert!(scribe.keep().await.is_err());
    assert_eq!(book.pages(), Vec::<u32>::new());
    scribe.note(&entry(4));
    scribe.keep().await.unwrap();
    assert_eq!(book.pages(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn who_stops_waiting_loses_no_entry_and_writes_none_twice() {
    let (tell, told) = oneshot::channel();
    let (book, mut scribe) = Book::of([Fate::Later(told)]);
    scribe.note(&entry(1));
    {
        // The append has begun, and its caller is gone.
        let mut keeping = std::pin::pin!(scribe.keep());
        let mut context = Waker::from_waker(std::task::Waker::noop());
        assert!(matches!(keeping.as_mut().poll(&mut context), Poll::Pending));
    }
    scribe.note(&entry(2));
    tell.send(()).unwrap();
    scribe.keep().await.unwrap();
    assert_eq!(book.pages(), [1, 2]);
    scribe.keep().await.unwrap();
    assert_eq!(book.pages(), [1, 2]);
}
