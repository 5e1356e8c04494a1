//! Calls for nothing do nothing and send nothing, with every engine; calls for too much are refused.

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::convert::{self, OneOfN};
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{CorrelatedBatch, Engine, Ot, OtConfig, OtError, Security};
use volvelle_prim::{BitVec, Block};

use super::session::{receive, send, supported, traffic};

/// One of every family, with what its peers may do.
fn configs() -> Vec<OtConfig> {
    let dual = Engine::Dual(dual::Set::quasi_cyclic(Size::N18));
    let engines = [
        Engine::Ferret(Set::K16),
        Engine::SoftSpoken(Piece::Four),
        dual,
    ];
    let with = |security| engines.map(|engine| OtConfig::new(engine).with_security(security));
    let all = [Security::SemiHonest, Security::Malicious].map(with);
    all.into_iter().flatten().filter(supported).collect()
}

/// Calls at both ends, between OTs so that an iteration is under way. The end that is OT sender is told.
fn does_nothing(call: impl Fn(&mut Ot, &mut Channel, bool) -> Result<(), OtError> + Sync) {
    for config in configs() {
        let what = &format!("{} {:?}", config.engine, config.security);
        let party = |ch: &mut Channel| {
            let mut ot = Ot::setup(ch, config).unwrap();
            let client = ch.role() == Role::Client;
            // Before the first OT, and in the midst.
            for _ in 0..2 {
                let (sent, stats) = (traffic(ch), ot.stats());
                call(&mut ot, ch, client).unwrap();
                call(&mut ot, ch, !client).unwrap();
                // Something that was left in a buffer would leave it now.
                ch.flush().unwrap();
                assert_eq!((traffic(ch), ot.stats()), (sent, stats), "{what}");
                if client {
                    send(&mut ot, ch, 10).unwrap();
                } else {
                    receive(&mut ot, ch, 10).unwrap();
                }
                ch.flush().unwrap();
            }
        };
        run_pair(party, party);
    }
}

#[test]
fn no_random_ots_and_no_trees() {
    does_nothing(|ot, ch, sends| match sends {
        true => {
            send(ot, ch, 0)?;
            ot.send_pprf(ch, 5, 2, 0, &mut |_, _| panic!("no tree"))
        }
        false => {
            receive(ot, ch, 0)?;
            ot.recv_pprf(ch, 5, 2, 0, &mut |_, _, _| panic!("no tree"))
        }
    });
}

#[test]
fn no_correlated_ots() {
    does_nothing(|ot, ch, sends| {
        let mut batch = CorrelatedBatch::new(0);
        if sends {
            batch.send(ch, ot)
        } else {
            batch.receive(ch, ot)
        }
    });
}

#[test]
fn too_many_correlated_ots_are_refused_before_there_is_room_for_them() {
    does_nothing(|ot, ch, sends| {
        let mut batch = CorrelatedBatch::new((1 << 32) + 1);
        let refused = if sends {
            batch.send(ch, ot)
        } else {
            batch.receive(ch, ot)
        };
        assert!(
            matches!(refused, Err(OtError::TooMany { .. })),
            "{refused:?}"
        );
        Ok(())
    });
}

#[test]
fn no_products() {
    does_nothing(|ot, ch, sends| {
        let done = if sends {
            ot.send_products(ch, &mut [], (&mut [], &mut []))
        } else {
            ot.recv_products(ch, &mut [], &mut [], &mut [])
        };
        // In malicious security there are none, not even none of them.
        match done {
            Err(OtError::Unsupported { .. }) => Ok(()),
            done => done,
        }
    });
}

#[test]
fn no_chosen_ots() {
    does_nothing(|ot, ch, sends| {
        if sends {
            return convert::send_chosen(ot, ch, &[]);
        }
        let got = convert::recv_chosen(ot, ch, &BitVec::zeros(0))?;
        assert!(got.is_empty());
        Ok(())
    });
}

#[test]
fn no_ots_of_one_of_many() {
    for (log_n, bits) in [(1, 1), (12, 64)] {
        let spec = OneOfN { log_n, bits };
        does_nothing(|ot, ch, sends| {
            if sends {
                return spec.send(ot, ch, &[]);
            }
            assert!(spec.recv(ot, ch, &[])?.is_empty());
            Ok(())
        });
    }
}

#[test]
fn more_chosen_messages_than_a_frame_holds_are_refused_and_change_nothing() {
    // 2^12 messages of 64 bits are 32 KiB an OT: 32 769 of them are over 1 GiB.
    let spec = OneOfN {
        log_n: 12,
        bits: 64,
    };
    does_nothing(|ot, ch, sends| {
        if sends {
            return Ok(());
        }
        let refused = [
            spec.recv(ot, ch, &vec![0; (1 << 15) + 1]).map(drop),
            convert::recv_chosen(ot, ch, &BitVec::zeros((1 << 25) + 1)).map(drop),
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(OtError::TooMany { .. })),
                "{refused:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn buffers_that_would_not_fit_in_the_memory_are_refused_and_change_nothing() {
    does_nothing(|ot, ch, sends| {
        let widths = [(24, 257), (2, usize::MAX), (1, usize::MAX / 2)];
        for (depth, width) in widths {
            let refused = if sends {
                ot.send_pprf(ch, depth, width, 1, &mut |_, _| panic!("a tree"))
            } else {
                ot.recv_pprf(ch, depth, width, 1, &mut |_, _, _| panic!("a tree"))
            };
            assert!(
                matches!(refused, Err(OtError::TooMany { .. })),
                "{refused:?}"
            );
        }
        let refused = ot.recv_random(ch, usize::MAX, &mut [0; 2], &mut []);
        assert!(matches!(refused, Err(OtError::Shape { .. })), "{refused:?}");
        Ok(())
    });
}

#[test]
fn one_ot_after_nothing_is_right() {
    let config = OtConfig::ferret(Set::K16);
    let (sent, got) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            send(&mut ot, ch, 0).unwrap();
            let messages = [[Block(5), Block(6)]];
            convert::send_chosen(&mut ot, ch, &messages)
        },
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            receive(&mut ot, ch, 0).unwrap();
            convert::recv_chosen(&mut ot, ch, &BitVec::from_fn(1, |_| true)).unwrap()
        },
    );
    sent.unwrap();
    assert!(got == [Block(6)]);
}
