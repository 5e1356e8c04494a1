//! Malicious security: a byte of every message of every engine is changed on the way. Either an end says so by name, or it
//! was a byte that nobody reads; never does an end hand out anything wrong.

use std::ops::Range;

use volvelle_net::testing::{Flip, Transcript};
use volvelle_net::{Label, Role};
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{BaseOt, Engine, OtConfig, OtError, Security};
use volvelle_prim::Prg;

use super::session::{DEPTH, End, TREES, assert_broken, payloads, run, supported};

const PARTIES: [Role; 2] = [Role::Client, Role::Server];
/// Trees of a message.
const GROUP: usize = 8;

fn config(engine: Engine) -> OtConfig {
    OtConfig::new(engine).with_security(Security::Malicious)
}

fn softspoken(piece: Piece) -> OtConfig {
    config(Engine::SoftSpoken(piece))
}

fn ferret(set: Set) -> OtConfig {
    config(Engine::Ferret(set))
}

/// What an end says of a message that is not its peer's; trouble of the connection is not yet that.
fn name(error: &OtError) -> &'static str {
    match error {
        OtError::Cheating { .. } => "cheating",
        OtError::Config { .. } => "settings",
        OtError::InvalidPoint { .. } => "point",
        OtError::InvalidKey { .. } => "key",
        OtError::Net(_) => "connection",
        other => panic!("{other:?}"),
    }
}

/// What the client and the server say of a flip; an end with an error is broken.
fn verdict(config: OtConfig, flip: Flip) -> [Option<&'static str>; 2] {
    let (ends, _) = run(config, Some(flip));
    ends.map(|End { done, ot, .. }| {
        let error = done.err()?;
        if let Some(mut ot) = ot {
            assert_broken(&mut ot);
        }
        Some(name(&error))
    })
}

/// Who notices that a message is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Whom it was for.
    Peer,
    /// Who sent it, at the peer's next message.
    Sender,
    /// One of the two.
    Either,
}

/// A flip is noticed, and named as one of these.
fn noticed(config: OtConfig, flip: Flip, by: By, names: &[&str], label: &str) {
    let said = verdict(config, flip);
    let [own, peer] = match flip.sender {
        Role::Client => said,
        Role::Server => [said[1], said[0]],
    };
    let fits = |said: Option<&str>| said.is_some_and(|name| names.contains(&name));
    let noticed = match by {
        By::Peer => fits(peer),
        By::Sender => fits(own),
        By::Either => fits(own) || fits(peer),
    };
    assert!(
        noticed,
        "{} {:?}: {label} altered, {flip:?}, gave {said:?}",
        config.engine, config.base
    );
}

/// The messages of an honest session.
fn honest(config: OtConfig) -> Transcript {
    let (ends, transcript) = run(config, None);
    for end in ends {
        end.done.unwrap();
    }
    transcript
}

/// Bytes at the start, in the middle and at the end, each with another bit.
fn spread(messages: &[Range<usize>]) -> [(usize, u8); 3] {
    let (first, last) = (&messages[0], &messages[messages.len() - 1]);
    let middle = &messages[messages.len() / 2];
    [
        (first.start, 1),
        (middle.start + middle.len() / 2, 0x10),
        (last.end - 1, 0x80),
    ]
}

/// Every message that these parties send under a label.
struct Row {
    label: &'static str,
    senders: &'static [Role],
    by: By,
    names: &'static [&'static str],
}

/// A message that its receiver checks.
const fn checked(label: &'static str, senders: &'static [Role]) -> Row {
    Row {
        label,
        senders,
        by: By::Peer,
        names: &["cheating"],
    }
}

/// A message of the base OTs, which may be malformed or lead to other keys.
const fn base(label: &'static str, names: &'static [&'static str]) -> Row {
    Row {
        label,
        senders: &PARTIES,
        by: By::Either,
        names,
    }
}

fn all_noticed(config: OtConfig, rows: &[Row]) {
    let transcript = honest(config);
    for &Row {
        label,
        senders,
        by,
        names,
    } in rows
    {
        for &sender in senders {
            let found = payloads(&transcript, sender, label);
            assert!(!found.is_empty(), "{label} is not sent by the {sender}");
            for (byte, mask) in spread(&found) {
                let flip = Flip { sender, byte, mask };
                noticed(config, flip, by, names, label);
            }
        }
    }
}

const AGREEMENT: [Row; 3] = [
    Row {
        label: "ot/setup/settings",
        senders: &PARTIES,
        by: By::Peer,
        names: &["settings"],
    },
    checked("ot/setup/commitment", &PARTIES),
    checked("ot/setup/share", &PARTIES),
];
const ENDEMIC: [Row; 2] = [
    base("ot/base/endemic/first", &["point", "cheating"]),
    base("ot/base/endemic/reply", &["point", "cheating"]),
];
const ML_KEM: [Row; 1] = [base("ot/base/mlkem/first", &["key", "cheating"])];
const EXTENSION: [Row; 3] = [
    checked("ot/softspoken/trees", &PARTIES),
    // The client is OT sender, so the server corrects.
    checked("ot/softspoken", &[Role::Server]),
    checked("ot/softspoken/rows", &[Role::Server]),
];
/// Ferret's seeds come from it both ways.
const BOOTSTRAP: [Row; 2] = [
    checked("ot/softspoken", &PARTIES),
    checked("ot/softspoken/rows", &PARTIES),
];
const ANSWER: Row = checked("ot/trees/answer", &[Role::Client]);
/// Of what there are two, one of them never read.
const HALF_READ: [&str; 2] = ["ot/softspoken/seeds", "ot/base/mlkem/reply"];
/// Whose parts are altered one by one.
const IN_PARTS: [&str; 2] = ["ot/trees", "ot/trees/challenge"];

#[test]
fn messages_of_the_set_up() {
    all_noticed(softspoken(Piece::Four), &AGREEMENT);
    all_noticed(softspoken(Piece::Four), &ENDEMIC);
    all_noticed(softspoken(Piece::Four).with_base(BaseOt::MlKem), &ML_KEM);
}

#[test]
fn messages_of_the_extension() {
    for piece in Piece::ALL {
        all_noticed(softspoken(piece), &EXTENSION);
    }
    all_noticed(ferret(Set::K16), &BOOTSTRAP);
}

/// Of each pair of messages an end reads one, as its secret choice has it: the other one is altered unnoticed and
/// without harm.
fn one_of_two_is_read(config: OtConfig, label: &'static str, bytes: usize) {
    let transcript = honest(config);
    for (sender, pair) in [(Role::Client, 0), (Role::Server, 127)] {
        let found = payloads(&transcript, sender, label);
        assert_eq!(found.len(), 1, "{label}");
        let start = found[0].start + pair * 2 * bytes;
        let noticed = [start, start + 2 * bytes - 1].map(|byte| {
            let mask = 4;
            let said = verdict(config, Flip { sender, byte, mask });
            let silent = said == [None, None];
            assert!(silent || said.contains(&Some("cheating")), "{said:?}");
            !silent
        });
        assert!(
            noticed[0] != noticed[1],
            "{label} of pair {pair}: {noticed:?}"
        );
    }
}

#[test]
fn what_was_not_chosen_may_change_and_what_was_may_not() {
    for piece in Piece::ALL {
        one_of_two_is_read(softspoken(piece), "ot/softspoken/seeds", 16);
    }
    let ml_kem = softspoken(Piece::Four).with_base(BaseOt::MlKem);
    one_of_two_is_read(ml_kem, "ot/base/mlkem/reply", 1088);
}

/// Frames `c_1 … c_d` of all trees of a batch: `c_1` and `c_d` of the first, the middle and the last one.
fn trees_are_checked(
    config: OtConfig,
    sender: Role,
    frames: &[Range<usize>],
    depth: u32,
    trees: usize,
) {
    assert_eq!(frames.len(), trees.div_ceil(GROUP), "{}", config.engine);
    // Of two frames the middle one is the last.
    let mut places = vec![0, frames.len() / 2, frames.len() - 1];
    places.dedup();
    for at in places {
        let used = GROUP.min(trees - at * GROUP);
        let frame = &frames[at];
        assert_eq!(frame.len(), 16 * used * depth as usize, "frame {at}");
        let level = 16 * used;
        // A tree in the middle of the frame, or its first or last one.
        let tree = [used / 2, 0, used - 1][at % 3];
        for (start, mask) in [(frame.start, 1), (frame.end - level, 0x40)] {
            let byte = start + 16 * tree + at % 16;
            let flip = Flip { sender, byte, mask };
            noticed(config, flip, By::Peer, &["cheating"], "ot/trees");
        }
    }
}

/// Messages of trees of an iteration.
fn iteration(set: Set) -> usize {
    (set.trees() * set.instances()).div_ceil(GROUP)
}

/// Tree messages of the client: those of the set-up, of the iteration, of the punctured PRF.
fn tree_messages(config: OtConfig, transcript: &Transcript) -> [Vec<Range<usize>>; 3] {
    let mut all = payloads(transcript, Role::Client, "ot/trees");
    let prf = all.split_off(all.len() - TREES.div_ceil(GROUP));
    let own = match config.engine {
        Engine::Ferret(set) => iteration(set),
        Engine::Dual(set) => (set.trees() * set.instances()).div_ceil(GROUP),
        Engine::SoftSpoken(_) => 0,
    };
    let iteration = all.split_off(all.len() - own);
    [all, iteration, prf]
}

/// `γ`, `β` and the opening, of a challenge and of the last one.
fn challenges_and_answers(config: OtConfig, transcript: &Transcript) {
    let challenges = payloads(transcript, Role::Server, "ot/trees/challenge");
    for challenge in [&challenges[0], &challenges[challenges.len() - 1]] {
        for part in 0..3 {
            let byte = challenge.start + 16 * part + 5 * part;
            let flip = Flip {
                sender: Role::Server,
                byte,
                mask: 2,
            };
            noticed(
                config,
                flip,
                By::Sender,
                &["cheating"],
                "ot/trees/challenge",
            );
        }
    }
    all_noticed(config, &[ANSWER]);
}

#[test]
fn trees_of_an_iteration() {
    let config = ferret(Set::K16);
    let transcript = honest(config);
    let [before, iteration, _] = tree_messages(config, &transcript);
    assert!(before.is_empty());
    trees_are_checked(
        config,
        Role::Client,
        &iteration,
        Set::K16.depth(),
        Set::K16.trees(),
    );
    challenges_and_answers(config, &transcript);
}

#[test]
fn trees_of_two_instances_and_of_the_iteration_that_seeds_them() {
    let (config, set) = (ferret(Set::K17), Set::K17);
    assert_eq!(set.instances(), 2);
    let transcript = honest(config);
    let [before, iteration, _] = tree_messages(config, &transcript);
    let trees = set.trees() * set.instances();
    trees_are_checked(config, Role::Client, &iteration, set.depth(), trees);
    // Set-up: an iteration of the smallest set each way.
    assert_eq!(before.len(), self::iteration(Set::K16));
    let theirs = payloads(&transcript, Role::Server, "ot/trees");
    assert_eq!(theirs.len(), self::iteration(Set::K16));
    for (sender, frame) in [(Role::Client, &before[50]), (Role::Server, &theirs[106])] {
        let (byte, mask) = (frame.start + 17, 8);
        let flip = Flip { sender, byte, mask };
        noticed(config, flip, By::Peer, &["cheating"], "ot/trees");
    }
}

#[test]
fn trees_of_dual_lpn() {
    let set = dual::Set::quasi_cyclic(Size::N18);
    let config = config(Engine::Dual(set));
    if !supported(&config) {
        return;
    }
    let transcript = honest(config);
    let [before, iteration, _] = tree_messages(config, &transcript);
    assert!(before.is_empty());
    trees_are_checked(config, Role::Client, &iteration, set.depth(), set.trees());
    challenges_and_answers(config, &transcript);
}

#[test]
fn trees_of_the_punctured_prf() {
    let config = softspoken(Piece::Two);
    let transcript = honest(config);
    let [before, iteration, prf] = tree_messages(config, &transcript);
    assert!(before.is_empty() && iteration.is_empty());
    trees_are_checked(config, Role::Client, &prf, DEPTH, TREES);
    challenges_and_answers(config, &transcript);
}

/// All labels of the tables.
fn labels() -> impl Iterator<Item = &'static str> {
    let rows = AGREEMENT.iter().chain(&ENDEMIC).chain(&ML_KEM);
    rows.chain(&EXTENSION)
        .chain([&ANSWER])
        .map(|row| row.label)
        .chain(HALF_READ)
        .chain(IN_PARTS)
}

#[test]
fn no_message_is_forgotten() {
    let known: Vec<u32> = labels().map(|label| Label::new(label).hash()).collect();
    for config in [
        ferret(Set::K17),
        softspoken(Piece::Four).with_base(BaseOt::MlKem),
    ] {
        let transcript = honest(config);
        let frames = [transcript.client_frames(), transcript.server_frames()];
        for (label, payload) in frames.into_iter().flatten() {
            assert!(
                known.contains(&label),
                "{}: a message of {} bytes is in no table",
                config.engine,
                payload.len()
            );
        }
    }
}

#[test]
#[ignore = "a minute, other bytes each time: cargo test --release -p volvelle-ot --test hostile any_byte -- --ignored"]
fn any_byte_of_any_message() {
    let mut prg = Prg::from_os();
    let mut below = |n: usize| (prg.next_u64() % n as u64) as usize;
    for config in [
        ferret(Set::K16),
        ferret(Set::K17),
        ferret(Set::K18).with_base(BaseOt::MlKem),
        softspoken(Piece::One),
        softspoken(Piece::Two),
        softspoken(Piece::Four),
        softspoken(Piece::Eight),
    ] {
        let transcript = honest(config);
        for label in labels() {
            for sender in PARTIES {
                let found = payloads(&transcript, sender, label);
                for _ in 0..4.min(4 * found.len()) {
                    let message = &found[below(found.len())];
                    let flip = Flip {
                        sender,
                        byte: message.start + below(message.len()),
                        mask: 1 << below(8),
                    };
                    let said = verdict(config, flip);
                    let named = |said: &Option<&str>| said.is_some_and(|s| s != "connection");
                    let unread = said == [None, None] && HALF_READ.contains(&label);
                    assert!(
                        unread || said.iter().any(named),
                        "{}: {label} altered, {flip:?}, gave {said:?}",
                        config.engine
                    );
                }
            }
        }
    }
}
