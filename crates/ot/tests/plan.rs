//! Choosing an engine: the figures are what engines cost, and the choice is sensible where it is obvious.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use volvelle_net::Link;
use volvelle_net::testing::run_pair;
use volvelle_ot::{Engine, Horizon, Ot, OtConfig, OtDemand, Security};

#[test]
fn figures_of_the_set_up_are_what_the_meter_counts() {
    for engine in Engine::PLANNED {
        let figures = engine.figures();
        let (client, server) = run_pair(
            |ch| Ot::setup(ch, OtConfig::new(engine)).map(|_| ch.meter().clone()),
            |ch| Ot::setup(ch, OtConfig::new(engine)).map(|_| ch.meter().clone()),
        );
        let (client, server) = (client.unwrap().total(), server.unwrap().total());
        assert_eq!(
            client.rounds.max(server.rounds),
            figures.setup_rounds,
            "rounds, {engine}"
        );
        let sent = client.sent.max(server.sent) as f64 * 8.0;
        let ratio = sent / figures.setup_bits as f64;
        assert!((0.85..1.15).contains(&ratio), "{engine}: {sent} bits");
    }
}

#[test]
fn figures_of_an_ot_are_those_of_the_source() {
    for engine in Engine::PLANNED {
        let (client, _) = run_pair(
            |ch| Ot::setup(ch, OtConfig::new(engine)).map(|ot| ot.stats()),
            |ch| Ot::setup(ch, OtConfig::new(engine)).map(|ot| ot.stats()),
        );
        let figures = engine.figures();
        let stated = figures.sender_bits + figures.receiver_bits;
        let counted = client.unwrap().bits_per_ot;
        assert!(
            (stated - counted).abs() < 1e-9,
            "{engine}: {stated} {counted}"
        );
    }
}

fn plan(link: Link, ots: u64, horizon: Horizon) -> String {
    let demand = OtDemand {
        client_sends: ots,
        server_sends: ots,
    };
    OtConfig::plan(&link, &demand, horizon, Security::SemiHonest)
        .engine
        .to_string()
}

#[test]
fn the_choice_follows_link_and_demand() {
    use Horizon::{Once, Session};
    let slow = Link::new(5_000_000, Duration::from_millis(50)).unwrap();
    // A few OTs, once: whatever starts soonest.
    assert!(plan(Link::LOOPBACK, 1000, Once).starts_with("softspoken"));
    assert!(plan(Link::WAN, 1000, Once).starts_with("softspoken"));
    // Many, where bandwidth is scarce: silent.
    assert!(plan(Link::WAN, 1 << 22, Once).starts_with("ferret"));
    assert_eq!(plan(slow, 1 << 24, Session), "ferret-k19");
    assert_eq!(plan(Link::WAN, 1000, Session), "ferret-k17");
    // In the long run, where bandwidth is free: what computes least.
    assert_eq!(plan(Link::LOOPBACK, 1 << 20, Session), "ferret-k17");
    assert_eq!(plan(Link::LAN, 1 << 20, Session), "ferret-k17");
}

#[test]
fn what_the_peer_may_do_is_kept() {
    let demand = OtDemand {
        client_sends: 1 << 20,
        server_sends: 0,
    };
    for security in [Security::SemiHonest, Security::Malicious] {
        let config = OtConfig::plan(&Link::WAN, &demand, Horizon::Once, security);
        assert_eq!(config.security, security);
        assert!(!matches!(config.engine, Engine::Dual(_)), "named only");
    }
}
