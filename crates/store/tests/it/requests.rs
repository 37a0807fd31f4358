use tieline_event::{
    Answer, Approval, Expired, Origin, Request, RequestBody, RequestId, Resolved, Seq,
};
use tieline_store::{Batch, Error, RequestChange, RequestState};

use crate::support::{Bench, assert_whole, events, key, open, seqs};

pub(crate) fn request(id: &str) -> Request {
    Request {
        id: id.into(),
        item: None,
        title: "Run touch x".into(),
        reason: None,
        body: RequestBody::Approval(Approval {
            tool: "Bash".into(),
            command: Some("touch x".into()),
            ..Approval::default()
        }),
        options: vec![],
    }
}

fn opened(seq: u64, id: &str) -> Batch {
    let native = Some(format!("native-{id}"));
    let change = RequestChange::Open { request: request(id), native, seq: Seq(seq) };
    Batch { requests: vec![change], ..events([seq]) }
}

fn resolved(seq: u64, id: &str) -> (Batch, Resolved) {
    let resolved = Resolved {
        request: id.into(),
        answer: Answer::allow(),
        option: None,
        by: Origin::Client,
        policy: None,
    };
    let requests = vec![RequestChange::Resolve(resolved.clone())];
    (Batch { requests, ..events([seq]) }, resolved)
}

#[test]
fn request_survives_a_restart_and_is_answered_once() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    bench.store.append_blocking(&lease, opened(1, "r1")).wait().unwrap();
    bench.store.append_blocking(&lease, opened(2, "r2")).wait().unwrap();
    let other = open(bench.dir.path());
    let waiting = other.open_requests(&key("a")).unwrap();
    let ids: Vec<_> = waiting.iter().map(|stored| stored.request.id.as_str()).collect();
    assert_eq!(ids, ["r1", "r2"]);
    assert_eq!(waiting[0].native.as_deref(), Some("native-r1"));
    assert_eq!(waiting[0].request, request("r1"));

    let (answer, resolution) = resolved(3, "r1");
    bench.store.append_blocking(&lease, answer).wait().unwrap();
    let (late, _) = resolved(4, "r1");
    let rejected = bench.store.append_blocking(&lease, late).wait().unwrap_err();
    assert!(matches!(rejected.error, Error::RequestNotOpen { .. }), "{rejected:?}");
    assert_eq!(seqs(&bench.store, "a"), [1, 2, 3], "the event of a refused answer is not there");
    let stored = other.request(&key("a"), &RequestId::from("r1")).unwrap().unwrap();
    assert_eq!(stored.state, RequestState::Resolved(resolution));

    let expired = Expired { request: "r2".into(), reason: "the turn ended".into() };
    let requests = vec![RequestChange::Expire(expired.clone())];
    bench.store.append_blocking(&lease, Batch { requests, ..events([4]) }).wait().unwrap();
    assert!(other.open_requests(&key("a")).unwrap().is_empty());
    let stored = other.request(&key("a"), &RequestId::from("r2")).unwrap().unwrap();
    assert_eq!(stored.state, RequestState::Expired(expired));
    assert_whole(&other);
}

#[test]
fn late_answer_does_not_fail_the_neighbours_of_its_group() {
    let bench = Bench::new();
    let (late, other) = (bench.lease("late"), bench.lease("other"));
    for round in 0..20 {
        let (answer, _) = resolved(1, "never-asked");
        let refused = bench.store.append_blocking(&late, answer);
        let good = bench.store.append_blocking(&other, events([round + 1]));
        assert!(refused.wait().is_err());
        good.wait().unwrap();
    }
    assert_eq!(seqs(&bench.store, "late"), Vec::<u64>::new());
    assert_whole(&bench.store);
}
