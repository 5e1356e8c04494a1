//! Several lanes a party, each on a thread of its own.
#![allow(missing_docs, clippy::unwrap_used)]

use std::thread;

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role, memory_pair};
use volvelle_ot::dual::{Set as DualSet, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{CorrelatedBatch, Engine, Ot, OtConfig, OtError, Security};
use volvelle_prim::Block;

const CONFIG: OtConfig = OtConfig::ferret(Set::K16);

/// One party's ends of lanes: threads of it run `work(lane, ot, channel)`. All ends are dropped when the last is done.
fn run_party<T: Send>(
    mut channels: Vec<Channel>,
    config: OtConfig,
    work: &(impl Fn(usize, &mut Ot, &mut Channel) -> T + Sync),
) -> Vec<T> {
    let mut ots = Ot::setup_lanes(&mut channels, config).unwrap();
    thread::scope(|scope| {
        let ends = ots.iter_mut().zip(&mut channels).enumerate();
        let threads: Vec<_> = ends
            .map(|(lane, (ot, ch))| scope.spawn(move || work(lane, ot, ch)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Both parties' ends of so many lanes; client's and server's outputs.
fn run_lanes<T: Send>(
    lanes: usize,
    config: OtConfig,
    work: impl Fn(usize, &mut Ot, &mut Channel) -> T + Sync,
) -> [Vec<T>; 2] {
    let (client, server) = (0..lanes).map(|_| memory_pair()).unzip();
    let work = &work;
    thread::scope(|scope| {
        let client = scope.spawn(move || run_party(client, config, work));
        let server = run_party(server, config, work);
        [client.join().unwrap(), server]
    })
}

/// Choice, pad, other pad if known.
type Seen = Vec<(u8, Block, Block)>;

/// Pads of `count` OTs each way, the client sending first.
fn both_ways(ot: &mut Ot, ch: &mut Channel, count: usize) -> Seen {
    let mut seen = vec![];
    for sender in [Role::Client, Role::Server] {
        let (mut zeros, mut ones) = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
        let mut choices = vec![0; count];
        if ot.role() == sender {
            ot.send_random(ch, 1, &mut zeros, &mut ones).unwrap();
            ch.flush().unwrap();
        } else {
            ot.recv_random(ch, 1, &mut choices, &mut zeros).unwrap();
        }
        seen.extend((0..count).map(|i| (choices[i], zeros[i], ones[i])));
    }
    seen
}

fn check([client, server]: &[Vec<Seen>; 2]) {
    for (client, server) in client.iter().zip(server) {
        assert_eq!(client.len(), server.len());
        for (c, s) in client.iter().zip(server) {
            let (sender, receiver) = if c.2 == Block::ZERO { (s, c) } else { (c, s) };
            assert!(receiver.1 == [sender.1, sender.2][usize::from(receiver.0)]);
            assert!(sender.1 != sender.2);
        }
    }
}

#[test]
fn lanes_of_every_engine_give_random_ots_both_ways() {
    use Security::{Malicious, SemiHonest};
    for (engine, security, count) in [
        (Engine::Ferret(Set::K16), SemiHonest, 900_000),
        (Engine::Ferret(Set::K17), SemiHonest, 40_000),
        (Engine::Ferret(Set::K16), Malicious, 5000),
        (Engine::SoftSpoken(Piece::Four), SemiHonest, 20_000),
        (Engine::SoftSpoken(Piece::Eight), Malicious, 5000),
        (
            Engine::Dual(DualSet::expand_convolute(Size::N18)),
            SemiHonest,
            1000,
        ),
    ] {
        let config = OtConfig::new(engine).with_security(security);
        // Lanes ask for different numbers of OTs.
        check(&run_lanes(3, config, |lane, ot, ch| {
            both_ways(ot, ch, count >> (2 * lane))
        }));
    }
}

#[test]
fn lanes_of_ferret_have_one_delta_a_party() {
    let deltas = |config| run_lanes(3, config, |_, ot, _| *ot.delta_share().unwrap());
    for party in deltas(CONFIG) {
        assert!(party.iter().all(|&delta| delta == party[0]));
    }
    for party in deltas(OtConfig::new(Engine::SoftSpoken(Piece::Eight))) {
        assert!(party[0] != party[1] && party[1] != party[2]);
    }
}

#[test]
fn one_lane_is_a_session_as_ever() {
    check(&run_lanes(1, CONFIG, |_, ot, ch| both_ways(ot, ch, 1000)));
    let refused = Ot::setup_lanes(&mut [], CONFIG);
    assert!(matches!(refused, Err(OtError::Shape { .. })));
}

#[test]
fn lanes_make_ots_ahead() {
    let (main_c, main_s): (Vec<_>, Vec<_>) = (0..2).map(|_| memory_pair()).unzip();
    let (up_c, up_s): (Vec<_>, Vec<_>) = (0..2).map(|_| memory_pair()).unzip();
    let (down_c, down_s): (Vec<_>, Vec<_>) = (0..2).map(|_| memory_pair()).unzip();
    let party = |mut main: Vec<Channel>, up: Vec<Channel>, down: Vec<Channel>| {
        let ots = Ot::setup_lanes(&mut main, CONFIG).unwrap();
        let mut ots: Vec<_> = ots
            .into_iter()
            .zip(up.into_iter().zip(down))
            .map(|(ot, (up, down))| ot.make_ahead(up, down))
            .collect();
        thread::scope(|scope| {
            let ends = ots.iter_mut().zip(&mut main).enumerate();
            let threads: Vec<_> = ends
                .map(|(lane, (ot, ch))| {
                    scope.spawn(move || both_ways(ot, ch, [1_500_000, 3][lane]))
                })
                .collect();
            let done = threads.into_iter().map(|t| t.join().unwrap());
            done.collect::<Vec<_>>()
        })
    };
    thread::scope(|scope| {
        let client = scope.spawn(move || party(main_c, up_c, down_c));
        let server = party(main_s, up_s, down_s);
        check(&[client.join().unwrap(), server]);
    });
}

#[test]
fn a_lane_whose_peer_leaves_fails_and_none_hangs() {
    // More than an iteration: what the others need may be with the lane that is gone.
    let [client, server] = run_lanes(3, CONFIG, |lane, ot, ch| {
        let role = ot.role();
        if lane == 1 && role == Role::Server {
            // Its thread gives up over something else, and hangs up.
            *ch = memory_pair().0;
            ot.abandon();
            return Ok(());
        }
        let mut pads = vec![Block::ZERO; 2_000_000];
        match role {
            Role::Client => {
                let mut ones = pads.clone();
                ot.send_random(ch, 1, &mut pads, &mut ones)?;
                ch.flush()?;
            }
            Role::Server => ot.recv_random(ch, 1, &mut vec![0; pads.len()], &mut pads)?,
        }
        Ok::<(), OtError>(())
    });
    for end in client.into_iter().chain(server) {
        let fit = matches!(
            end,
            Ok(()) | Err(OtError::Net(_) | OtError::OtherLane | OtError::Broken)
        );
        assert!(fit, "{end:?}");
    }
}

#[test]
fn parties_with_other_lanes_are_told() {
    let errors = |client: Vec<Channel>, server: Vec<Channel>| {
        let set_up = |mut channels: Vec<Channel>| {
            let error = Ot::setup_lanes(&mut channels, CONFIG).err();
            error.map(|error| error.to_string())
        };
        thread::scope(|scope| {
            let client = scope.spawn(move || set_up(client));
            [set_up(server), client.join().unwrap()]
        })
    };
    let (client, mut server): (Vec<_>, Vec<_>) = (0..3).map(|_| memory_pair()).unzip();
    server.pop();
    for error in errors(client, server) {
        let error = error.unwrap();
        assert!(error.contains("lanes"), "{error}");
    }
    let (client, mut server): (Vec<_>, Vec<_>) = (0..2).map(|_| memory_pair()).unzip();
    server.swap(0, 1);
    for error in errors(client, server) {
        let error = error.unwrap();
        assert!(error.contains("lane"), "{error}");
    }
}

#[test]
fn tags_tell_wrong_correlated_ots() {
    let (client, server) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, CONFIG).unwrap();
            let mut batches = [CorrelatedBatch::new(5000), CorrelatedBatch::new(5000)];
            for batch in &mut batches {
                batch.send(ch, &mut ot).unwrap();
            }
            ch.flush().unwrap();
            batches.map(|batch| batch.tags())
        },
        |ch| {
            let mut ot = Ot::setup(ch, CONFIG).unwrap();
            let mut batches = [CorrelatedBatch::new(5000), CorrelatedBatch::new(5000)];
            for batch in &mut batches {
                batch.receive(ch, &mut ot).unwrap();
            }
            batches.map(|batch| batch.tags())
        },
    );
    for (client, server) in client.iter().zip(&server) {
        assert_eq!(
            (client.mismatches(server), server.mismatches(client)),
            (0, 0)
        );
    }
    assert_eq!(server[0].mismatches(&client[1]), 5000);
    assert_eq!(server[0].mismatches(&server[1]), 5000);
}
