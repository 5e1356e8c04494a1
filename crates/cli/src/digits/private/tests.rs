use proptest::prelude::*;
use volvelle_net::memory_pair;
use volvelle_net::testing::{Transcript, run_pair_recorded, scripted};

use super::*;
use crate::digits::weights::Weights;

const SETTINGS: Settings = Settings {
    batch: 3,
    protocol: ProtocolChoice::Auto,
    link: Link::LOOPBACK,
};

fn model() -> FixedModel {
    let some = |n: usize, step: usize| {
        (0..n)
            .map(|i| ((i * step) % 41) as f32 / 50.0 - 0.4)
            .collect()
    };
    let weights = Weights {
        w1: some(HIDDEN * PIXELS, 7),
        b1: some(HIDDEN, 5),
        w2: some(CLASSES * HIDDEN, 11),
        b2: some(CLASSES, 3),
    };
    FixedModel::new(&weights).unwrap()
}

fn images(count: usize) -> Vec<[u8; PIXELS]> {
    (0..count)
        .map(|k| std::array::from_fn(|i| ((i * (k + 3) + k * k) % 17) as u8))
        .collect()
}

/// What a session gave.
struct Held {
    client: SessionReport,
    server: SessionReport,
    spans: Vec<(String, u64)>,
    transcript: Transcript,
}

fn session(count: usize, settings: Settings, ahead: bool) -> Held {
    let (model, images) = (model(), images(count));
    let extended = |ch: &Channel| {
        ch.meter()
            .spans()
            .map(|(name, traffic)| (name, traffic.bits()))
            .collect::<Vec<_>>()
    };
    let ((c1, s1), (c2, s2)) = (memory_pair(), memory_pair());
    let [of_client, of_server] =
        [[c1, c2], [s1, s2]].map(|ends| ahead.then(|| Background::ready(ends)));
    let ((client, spans), server, transcript) = run_pair_recorded(
        |ch| {
            let report = query(
                ch,
                of_client,
                &images,
                settings.plan(count).unwrap(),
                &mut |_, _| Ok(()),
            )
            .unwrap();
            (report, extended(ch))
        },
        |ch| serve(ch, of_server, &model, settings).unwrap(),
    );
    Held {
        client,
        server,
        spans,
        transcript,
    }
}

fn wanted(count: usize) -> Vec<u8> {
    let model = model();
    images(count)
        .iter()
        .map(|image| model.classify(image))
        .collect()
}

#[test]
fn answers_and_costs_are_exact() {
    let Held {
        client,
        server,
        spans,
        ..
    } = session(7, SETTINGS, false);
    let wanted = wanted(7);
    assert!(
        wanted.iter().any(|class| *class != wanted[0]),
        "a dull test"
    );
    assert_eq!(client.classes, wanted);
    assert!(server.classes.is_empty());
    assert_eq!((client.batches, server.batches), (3, 3));
    let secret = Secret::Client { images: &[] };
    let plan = SETTINGS.plan(7).unwrap();
    let layers = Layers::new(secret, plan.gelu).unwrap();
    let costs: Vec<PhasedCost> = [3, 3, 1].iter().map(|n| layers.cost(*n).unwrap()).collect();
    let bits = |part: fn(&PhasedCost) -> u64| costs.iter().map(part).sum::<u64>() as f64;
    let making: u64 = spans
        .iter()
        .filter(|(name, _)| name.ends_with("ot/extend") && !name.starts_with("ot/setup"))
        .map(|(_, bits)| bits)
        .sum();
    for report in [&client, &server] {
        assert_eq!(
            report.prep.bits - making as f64,
            bits(|cost| cost.prep.bits())
        );
        assert_eq!(report.online.bits, bits(|cost| cost.online.bits()));
    }
}

/// Not one OT is made that would not have been made without a background, and every bit of it is counted.
#[test]
fn ots_made_ahead_cost_the_same_bits() {
    let (plain, ahead) = (session(7, SETTINGS, false), session(7, SETTINGS, true));
    assert!(!plain.client.ahead && ahead.client.ahead && ahead.server.ahead);
    assert_eq!(ahead.client.classes, plain.client.classes);
    for report in [&ahead.client, &ahead.server] {
        assert_eq!(report.setup.bits, plain.client.setup.bits);
        assert_eq!(report.prep.bits, plain.client.prep.bits);
        assert_eq!(report.online.bits, plain.client.online.bits);
        assert_eq!(report.online.rounds, plain.client.online.rounds);
    }
}

#[test]
fn segments_are_looked_up_as_asked() {
    for protocol in [Protocol::Rotation, Protocol::OneRound] {
        let settings = Settings {
            protocol: ProtocolChoice::Named(protocol),
            ..SETTINGS
        };
        let held = session(4, settings, false);
        assert_eq!(held.client.classes, wanted(4));
        assert_eq!(held.client.protocol, protocol.name());
        assert_eq!(held.server.protocol, protocol.name());
    }
}

#[test]
fn a_choice_that_is_not_to_be_is_refused() {
    let named = |protocol| Settings {
        protocol: ProtocolChoice::Named(protocol),
        ..SETTINGS
    };
    let job = |protocol| Job { count: 1, protocol };
    let ask = |job: &[u8], settings| {
        serve(
            &mut scripted(Role::Server, frame(job)),
            None,
            &model(),
            settings,
        )
        .unwrap_err()
    };
    let rotation = job(Protocol::Rotation).to_bytes();
    // Not what was agreed, not known, not for such lookups.
    let refused = ask(&rotation, named(Protocol::Doubling));
    assert!(matches!(refused, CliError::Choice { got } if got == "rotation"));
    let unknown: Vec<u8> = rotation[..8].iter().chain(&[0xff; 24]).copied().collect();
    let refused = ask(&unknown, SETTINGS);
    assert!(matches!(refused, CliError::Choice { .. }), "{refused}");
    let refused = ask(&job(Protocol::Flute).to_bytes(), SETTINGS);
    assert!(refused.to_string().contains("flute"), "{refused}");
}

/// A message that asks for something.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend(JOB.hash().to_le_bytes());
    frame.extend(1u32.to_le_bytes());
    frame.extend(payload);
    frame
}

#[test]
fn too_many_images_are_refused() {
    for count in [0, MAX_IMAGES + 1, u64::MAX] {
        let protocol = Protocol::Doubling;
        let asked = frame(&Job { count, protocol }.to_bytes());
        let refused =
            serve(&mut scripted(Role::Server, asked), None, &model(), SETTINGS).unwrap_err();
        assert!(
            matches!(refused, CliError::TooMany { got, .. } if got == count),
            "{refused}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What the peer sent in another session, cut off somewhere, with some bytes altered.
    #[test]
    fn no_bytes_make_a_party_panic(
        cut in 0.0..1.0f64,
        altered in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 0..4),
    ) {
        thread_local!(static SENT: Transcript = session(2, SETTINGS, false).transcript);
        let (to_server, to_client) = SENT.with(|t| (t.client_sent.clone(), t.server_sent.clone()));
        for (role, mut bytes) in [(Role::Client, to_client), (Role::Server, to_server)] {
            bytes.truncate((bytes.len() as f64 * cut) as usize);
            for (at, with) in &altered {
                let at = (bytes.len() as f64 * at) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= with;
                }
            }
            let ch = &mut scripted(role, bytes);
            let result = match role {
                Role::Client => query(ch, None, &images(2), SETTINGS.plan(2).unwrap(), &mut |_, _| Ok(())),
                Role::Server => serve(ch, None, &model(), SETTINGS),
            };
            prop_assert!(result.is_err());
        }
    }
}
