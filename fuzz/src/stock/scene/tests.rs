use super::*;

const SCENE: &[u8] = b"!turn\n\
{\"type\":\"call\",\"parent_id\":null,\"message\":{\"id\":\"a\"}}\n\
{\"type\":\"call\",\"parent_id\":\"a\",\"message\":{\"id\":\"b\"}}\n\
{\"type\":\"result\",\"call_id\":\"b\"}\n\
{\"type\":\"completed\"}\n";

/// What one of these many changes makes of the scene.
#[track_caller]
fn becomes(change: fn(&mut Vec<u8>, &mut Rng), expected: &str) {
    let made = (0..500).map(|seed| {
        let mut scene = SCENE.to_vec();
        change(&mut scene, &mut Rng::with_seed(seed));
        String::from_utf8(scene).unwrap()
    });
    let all: std::collections::BTreeSet<String> = made.collect();
    assert!(all.iter().any(|scene| scene.contains(expected)), "{all:?}");
}

#[test]
fn ids_take_the_place_of_others() {
    becomes(alias_one, "\"call_id\":\"a\"");
    becomes(alias_all, "\"parent_id\":\"b\",\"message\":{\"id\":\"b\"}}\n{\"type\":\"result\"");
}

#[test]
fn a_thing_may_be_its_own_parent_or_one_of_a_ring() {
    becomes(other_parent, "\"parent_id\":\"b\",\"message\":{\"id\":\"b\"}");
    becomes(other_parent, "\"parent_id\":\"a\",\"message\":{\"id\":\"a\"}");
    becomes(chain, "\"parent_id\":\"link1\",\"message\":{\"id\":\"link2\"}");
    becomes(chain, "\"parent_id\":\"link512\",\"message\":{\"id\":\"link1\"}");
}

#[test]
fn strings_without_an_end_are_no_trouble() {
    for cut in 0..SCENE.len() {
        for seed in 0..50 {
            let mut scene = SCENE.to_vec();
            scene.remove(cut);
            change(&mut scene, &mut Rng::with_seed(seed));
        }
    }
}

#[test]
fn starts_and_ends_are_missing_or_come_twice() {
    becomes(drop_edge, "\"b\"}}\n{\"type\":\"completed\"}\n");
    becomes(double_edge, "{\"type\":\"completed\"}\n{\"type\":\"completed\"}\n");
}

#[test]
fn lines_change_their_places_and_none_is_lost() {
    becomes(swap, "{\"type\":\"completed\"}\n{\"type\":\"call\"");
    becomes(shuffle, "{\"type\":\"completed\"}\n{\"type\":\"result\"");
    let lines = |scene: &[u8]| {
        let mut lines: Vec<Vec<u8>> =
            scene.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    for seed in 0..500 {
        for change in [swap, shuffle] {
            let mut scene = SCENE.to_vec();
            change(&mut scene, &mut Rng::with_seed(seed));
            assert_eq!(lines(&scene), lines(SCENE));
        }
    }
}
