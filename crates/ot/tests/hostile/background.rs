//! What goes wrong in the threads that make OTs ahead reaches the caller, by name.

use volvelle_net::testing::{Flip, run_pair_altered};
use volvelle_net::{Channel, Role, memory_pair};
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::testing::setup_seeded;
use volvelle_ot::{Engine, Ot, OtConfig, OtError, Security};

use super::interrupted::until_it_fails;
use super::session::{assert_broken, receive, send, undisturbed};

/// Bytes before a payload.
const HEADER: usize = 12;

/// What the calls of both parties give with OTs made ahead; a byte may be changed on the channel of those that the client sends.
fn run<A: Send>(
    config: OtConfig,
    flip: Option<Flip>,
    call: impl Fn(&mut Ot, &mut Channel) -> A + Sync,
) -> [A; 2] {
    let session = || {
        let ((main_c, main_s), (other_c, other_s)) = (memory_pair(), memory_pair());
        let party = |ahead: &mut Channel, mut main: Channel, other: Channel| {
            let ahead = std::mem::replace(ahead, memory_pair().0);
            let seed = u64::from(main.role() == Role::Server);
            let ot = setup_seeded(&mut main, config, seed).unwrap();
            call(&mut ot.make_ahead(ahead, other), &mut main)
        };
        run_pair_altered(
            flip,
            |ahead| party(ahead, main_c, other_c),
            |ahead| party(ahead, main_s, other_s),
        )
    };
    let (client, server, _) = undisturbed(session);
    [client, server]
}

/// OTs with the client as sender.
fn client_sends(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    match ch.role() {
        Role::Client => send(ot, ch, count),
        Role::Server => receive(ot, ch, count),
    }
}

/// Where the answer's payload is, after all trees of an iteration.
fn answer_of(set: Set) -> usize {
    let trees = set.trees() * set.instances();
    let frames = trees.div_ceil(8) + 1;
    frames * HEADER + trees * set.depth() as usize * 16
}

/// Where the payload of the corrections of a chunk is, in malicious security.
fn corrections_of(chunk: usize, piece: Piece) -> usize {
    let bytes = piece.chunk_bits(Security::Malicious) as usize / 8;
    chunk * (2 * HEADER + bytes) + HEADER
}

#[test]
fn a_peer_that_cheats_in_the_background_is_named_to_the_caller() {
    let k16 = Engine::Ferret(Set::K16);
    let k17 = Engine::Ferret(Set::K17);
    let extension = Engine::SoftSpoken;
    // Engine, who cheats, at which byte; whom the check is for.
    let rows = [
        (k16, Role::Client, HEADER + 5, Role::Server),
        (k16, Role::Client, answer_of(Set::K16), Role::Server),
        (k16, Role::Server, HEADER, Role::Server),
        (k17, Role::Client, HEADER + 5, Role::Server),
        (
            extension(Piece::One),
            Role::Server,
            corrections_of(0, Piece::One),
            Role::Client,
        ),
        (
            extension(Piece::Four),
            Role::Server,
            corrections_of(30, Piece::Four),
            Role::Client,
        ),
    ];
    for (engine, sender, byte, victim) in rows {
        let config = OtConfig::new(engine).with_security(Security::Malicious);
        let flip = Flip {
            sender,
            byte,
            mask: 1,
        };
        let errors = run(config, Some(flip), |ot, ch| {
            if ch.role() != victim {
                // As many as the victim may ask for, whatever it gets.
                let _ = (0..40).try_for_each(|_| client_sends(ot, ch, 8000));
                return None;
            }
            let error = until_it_fails(|| client_sends(ot, ch, 8000));
            assert_broken(ot);
            Some(error)
        });
        let error = errors.into_iter().flatten().next();
        assert!(
            matches!(error, Some(OtError::Cheating { .. })),
            "{engine} {flip:?}: {error:?}"
        );
    }
}

#[test]
fn a_peer_that_leaves_the_background_breaks_either_end() {
    let dual = Engine::Dual(dual::Set::expand_convolute(Size::N18));
    let rows = [
        (Engine::Ferret(Set::K16), Security::SemiHonest),
        (Engine::Ferret(Set::K16), Security::Malicious),
        (Engine::SoftSpoken(Piece::Four), Security::Malicious),
        (dual, Security::SemiHonest),
    ];
    for (engine, security) in rows {
        let config = OtConfig::new(engine).with_security(security);
        for left in [Role::Client, Role::Server] {
            run(config, None, |ot, ch| {
                if ch.role() != left {
                    return;
                }
                let error = until_it_fails(|| client_sends(ot, ch, 40_000));
                assert!(matches!(error, OtError::Net(_)), "{engine}: {error:?}");
                assert_broken(ot);
            });
        }
    }
}
