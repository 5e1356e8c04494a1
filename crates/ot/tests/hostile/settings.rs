//! Parties that were set up otherwise are both told, by name and before anything is computed.

use volvelle_net::Channel;
use volvelle_net::testing::run_pair;
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{BaseOt, Engine, Ot, OtConfig, OtError, Security};

use super::session::supported;

fn engines() -> Vec<Engine> {
    let dual = Size::ALL.into_iter().flat_map(|size| {
        [
            dual::Set::expand_convolute(size),
            dual::Set::quasi_cyclic(size),
        ]
    });
    Set::ALL
        .into_iter()
        .map(Engine::Ferret)
        .chain(Piece::ALL.into_iter().map(Engine::SoftSpoken))
        .chain(dual.map(Engine::Dual))
        .collect()
}

/// What both ends say: the setting, this end's code and the other's.
fn told(configs: [OtConfig; 2]) -> [(&'static str, u8, u8); 2] {
    let party = |config| move |ch: &mut Channel| (Ot::setup(ch, config).err(), ch.meter().total());
    let (client, server) = run_pair(party(configs[0]), party(configs[1]));
    [client, server].map(|(error, traffic)| {
        // Settings, and a share or a commitment to one.
        assert!(traffic.messages_sent <= 2, "{configs:?}: {traffic:?}");
        let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
        match error {
            Some(OtError::Config { what, ours, theirs }) => {
                assert!(
                    text.contains(what) && text.contains("same engine"),
                    "{text}"
                );
                (what, ours, theirs)
            }
            other => panic!("{configs:?}: {other:?}"),
        }
    })
}

fn both_are_told(configs: [OtConfig; 2], expected: &str) {
    let [client, server] = told(configs);
    assert_eq!(client.0, expected, "{configs:?}");
    assert_eq!((client.1, client.2), (server.2, server.1), "{configs:?}");
    assert_eq!(client.0, server.0, "{configs:?}");
    assert!(client.1 != client.2, "{configs:?}");
}

#[test]
fn every_two_engines_and_sets_are_told_apart() {
    let engines = engines();
    for (i, &one) in engines.iter().enumerate() {
        for &other in &engines[..i] {
            both_are_told([one, other].map(OtConfig::new), "engine");
        }
    }
}

/// Every pair of base OT and security, as far as the engine has it.
fn variants(engine: Engine) -> Vec<OtConfig> {
    let both = [Security::SemiHonest, Security::Malicious];
    let with = |base| {
        let config = OtConfig::new(engine).with_base(base);
        both.into_iter().map(move |s| config.with_security(s))
    };
    let all = BaseOt::ALL.into_iter().flat_map(with);
    all.filter(supported).collect()
}

#[test]
fn base_ot_and_security_are_told_apart_with_every_engine() {
    for engine in engines() {
        let variants = variants(engine);
        for &one in &variants {
            for &other in &variants {
                if one == other {
                    continue;
                }
                // The first that differs, in the order of the message.
                let what = if one.base == other.base {
                    "security"
                } else {
                    "base OT"
                };
                both_are_told([one, other], what);
            }
        }
    }
}

#[test]
fn of_several_differences_the_engine_is_told() {
    let one = OtConfig::ferret(Set::K18);
    let other = OtConfig::new(Engine::SoftSpoken(Piece::Two))
        .with_base(BaseOt::MlKem)
        .with_security(Security::Malicious);
    both_are_told([one, other], "engine");
    both_are_told([other, one], "engine");
}
