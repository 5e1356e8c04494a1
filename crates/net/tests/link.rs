//! The link emulator against plain computation of transfer times.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use volvelle_net::testing::run_ends;
use volvelle_net::{
    Channel, Config, Label, Link, Listener, Role, Security, connect, memory_pair_with,
};

const A: Label = Label::new("test/a");
const HEADER: u64 = 12;

/// What a loaded machine may add to each wait.
const SLACK: Duration = Duration::from_millis(150);

fn link(text: &str) -> Link {
    text.parse().unwrap()
}

fn assert_took(took: Duration, expected: Duration, waits: u32) {
    assert!(took >= expected, "{took:?} is less than {expected:?}");
    assert!(
        took <= expected + SLACK * waits,
        "{took:?} is more than {expected:?} and {waits} waits"
    );
}

#[test]
fn round_trips_take_the_round_trip_time() {
    let link = link("100Mbit,20ms");
    let (took, ()) = run_ends(
        memory_pair_with(&Config::new().link(link)),
        |client| {
            let start = Instant::now();
            for _ in 0..5 {
                client.send(A, &[0; 100]).unwrap();
                client.recv(A, &mut [0; 100]).unwrap();
            }
            start.elapsed()
        },
        |server| {
            for _ in 0..5 {
                server.recv(A, &mut [0; 100]).unwrap();
                server.send(A, &[0; 100]).unwrap();
            }
        },
    );
    assert_took(
        took,
        (link.rtt() + link.transfer_time(100 + HEADER) * 2) * 5,
        10,
    );
}

#[test]
fn bulk_takes_its_size_by_the_rate_and_half_a_round_trip() {
    let link = link("80Mbit,30ms");
    const SIZE: usize = 2_000_000;
    let expected = Duration::from_millis(200 + 15);
    assert!(link.transfer_time(SIZE as u64) == Duration::from_millis(200));
    let send = |channel: &mut Channel| {
        for _ in 0..20 {
            channel.send(A, &[0; SIZE / 20]).unwrap();
        }
        channel.flush().unwrap();
    };
    let took = |channel: &mut Channel, start: Instant| {
        for _ in 0..20 {
            channel.recv(A, &mut [0; SIZE / 20]).unwrap();
        }
        start.elapsed()
    };
    let start = Instant::now();
    let (_, one_way) = run_ends(memory_pair_with(&Config::new().link(link)), send, |s| {
        took(s, start)
    });
    // Chunks queue behind each other: one delay for all, not one each.
    assert_took(one_way, expected, 1);

    let start = Instant::now();
    let both = |channel: &mut Channel| {
        send(channel);
        took(channel, start)
    };
    let (client, server) = run_ends(memory_pair_with(&Config::new().link(link)), both, both);
    assert_took(client.max(server), expected, 2);
}

#[test]
fn sockets_are_delayed_too() {
    let link = link("1Gbit,40ms");
    let config = Config::new().link(link);
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = listener
                .accept(Role::Server, &Security::Plain, &config, None)
                .unwrap();
            server.recv(A, &mut [0]).unwrap();
            server.send(A, &[1]).unwrap();
        });
        let mut client = connect(&address, Role::Client, &Security::Plain, &config).unwrap();
        let start = Instant::now();
        client.send(A, &[1]).unwrap();
        client.recv(A, &mut [0]).unwrap();
        assert_took(start.elapsed(), link.rtt(), 2);
    });
}

#[test]
fn presets_are_the_papers_settings() {
    assert_eq!(
        link("lan"),
        Link::new(3_000_000_000, Duration::from_micros(800)).unwrap()
    );
    assert_eq!(
        link("wan"),
        Link::new(100_000_000, Duration::from_millis(50)).unwrap()
    );
    assert!(link("loopback").is_loopback());
    assert_eq!(link("loopback").transfer_time(1 << 40), Duration::ZERO);
}

#[test]
fn descriptions_are_read_and_written() {
    assert_eq!(
        link("200Mbit,20ms"),
        Link::new(200_000_000, Duration::from_millis(20)).unwrap()
    );
    assert_eq!(
        link("1.5Gbit/s, 0.8ms"),
        Link::new(1_500_000_000, Duration::from_micros(800)).unwrap()
    );
    assert_eq!(
        link("500kbit,1s"),
        Link::new(500_000, Duration::from_secs(1)).unwrap()
    );
    assert_eq!(link("3000Mbit,800us"), Link::LAN);
    for text in [
        "loopback",
        "lan",
        "wan",
        "200Mbit,20ms",
        "1.5Gbit,3ms",
        "250kbit,0.5ms",
        "1.25Mbit,0ms",
    ] {
        assert_eq!(link(text).to_string(), text);
    }
}

#[test]
fn bad_descriptions_say_what_would_be_right() {
    for (text, word) in [
        ("fast", "such as 200Mbit,20ms"),
        ("", "such as 200Mbit,20ms"),
        ("200,20ms", "rate `200` should be"),
        ("200Mbit,20", "round-trip time `20` should be"),
        ("200Mbit,-1ms", "round-trip time"),
        ("NaNMbit,1ms", "rate"),
        ("9999999Gbit,1ms", "between 100 kbit/s"),
        ("10kbit,1ms", "between 100 kbit/s"),
        ("1Gbit,1e300s", "round-trip time"),
        ("1Gbit,6s", "5 s at most"),
        ("1Gbit,1ms,2", "round-trip time"),
    ] {
        let refused = text.parse::<Link>().unwrap_err().to_string();
        assert!(
            refused.contains(word) && refused.contains(&format!("link `{text}`")),
            "{refused}"
        );
    }
}
