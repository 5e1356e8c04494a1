//! Round-trip time and throughput of each transport on this machine.
//!
//! `cargo run --release -p volvelle-net --features testing --example speed`

use std::time::{Duration, Instant};

use volvelle_net::testing::run_ends;
use volvelle_net::{
    Channel, Config, Credentials, Label, Link, Listener, NetError, NewIdentity, Role, Security,
    connect, memory_pair, memory_pair_with,
};

const DATA: Label = Label::new("speed/data");

fn main() -> Result<(), NetError> {
    let (client, server) = (
        NewIdentity::generate("client", 1)?,
        NewIdentity::generate("server", 1)?,
    );
    let secured = |own: &NewIdentity, peer: &NewIdentity| {
        Credentials::from_pem(own.certificate_pem(), own.key_pem(), peer.certificate_pem())
            .map(Security::Tls)
    };
    measure("memory", || Ok(memory_pair()))?;
    measure("tcp", || sockets(&Security::Plain, &Security::Plain))?;
    let (client, server) = (secured(&client, &server)?, secured(&server, &client)?);
    measure("tls", || sockets(&client, &server))?;
    for link in [Link::LAN, Link::WAN] {
        const PINGS: u32 = 40;
        let ends = memory_pair_with(&Config::new().link(link));
        let (ping, _) = run_ends(ends, |c| pings(c, PINGS, true), |s| pings(s, PINGS, false));
        let nominal = link.rtt() + 2 * link.transfer_time(64 + 12);
        println!(
            "{link}: round trip {:.0} µs, nominal {:.0} µs",
            micros(ping?) / f64::from(PINGS),
            micros(nominal)
        );
    }
    Ok(())
}

fn sockets(client: &Security, server: &Security) -> Result<(Channel, Channel), NetError> {
    let config = Config::new();
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr().to_string();
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept(Role::Server, server, &config, None));
        let connected = connect(&address, Role::Client, client, &config)?;
        match accepted.join() {
            Ok(accepted) => Ok((connected, accepted?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn measure(
    name: &str,
    pair: impl Fn() -> Result<(Channel, Channel), NetError>,
) -> Result<(), NetError> {
    const PINGS: u32 = 20_000;
    let (ping, _) = run_ends(
        pair()?,
        |c| pings(c, PINGS, true),
        |s| pings(s, PINGS, false),
    );
    let (span, _) = run_ends(pair()?, |c| Ok::<_, NetError>(spans(c)), |_| ());
    println!(
        "{name}: round trip {:.1} µs, span {:.0} ns",
        micros(ping?) / f64::from(PINGS),
        span?
    );
    for (size, count) in [
        (16_usize, 1_000_000_usize),
        (64 << 10, 40_000),
        (16 << 20, 160),
    ] {
        let (time, _) = run_ends(
            pair()?,
            |c| produce(c, size, count),
            |s| consume(s, size, count),
        );
        let rate = (size * count) as f64 / time?.as_secs_f64() / 1e9;
        println!(
            "{name}: messages of {size} bytes: {rate:.2} GB/s, {:.2} M/s",
            rate * 1e3 / size as f64
        );
    }
    Ok(())
}

fn pings(channel: &mut Channel, count: u32, first: bool) -> Result<Duration, NetError> {
    let start = Instant::now();
    let mut message = [0; 64];
    for _ in 0..count {
        if first {
            channel.send(DATA, &message)?;
        }
        channel.recv(DATA, &mut message)?;
        if !first {
            channel.send(DATA, &message)?;
        }
    }
    Ok(start.elapsed())
}

/// Nanoseconds a span.
fn spans(channel: &mut Channel) -> f64 {
    const COUNT: u32 = 1_000_000;
    let start = Instant::now();
    for _ in 0..COUNT {
        channel.span("outer", |channel| std::hint::black_box(channel.role()));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT)
}

fn produce(channel: &mut Channel, size: usize, count: usize) -> Result<Duration, NetError> {
    let payload = vec![1; size];
    let start = Instant::now();
    for _ in 0..count {
        channel.send(DATA, &payload)?;
    }
    // Done when the other party has it all.
    channel.recv(DATA, &mut [0])?;
    Ok(start.elapsed())
}

fn consume(channel: &mut Channel, size: usize, count: usize) -> Result<(), NetError> {
    let mut payload = vec![0; size];
    for _ in 0..count {
        channel.recv(DATA, &mut payload)?;
    }
    channel.send(DATA, &[0])?;
    channel.flush()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
