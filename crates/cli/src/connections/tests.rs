use std::net::TcpStream;

use super::*;

fn terms(ahead: Ahead) -> Terms {
    Terms {
        security: Security::Plain,
        config: Config::new().timeout(Duration::from_secs(2)),
        patience: Duration::from_secs(2),
        handshake: Handshake::new().parameter("task", "test"),
        ahead,
    }
}

fn open(terms: Terms) -> (Reception, String) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    (Reception::open(listener, terms), address)
}

/// A label's byte across each of these connections tells whose they are.
const NAME: Label = Label::new("test/name");

fn say(channels: &mut [Channel; 2], name: u8) {
    for (direction, channel) in channels.iter_mut().enumerate() {
        channel.send(NAME, &[name, direction as u8]).unwrap();
        channel.flush().unwrap();
    }
}

fn hear(channels: &mut [Channel; 2]) -> u8 {
    let heard = channels.each_mut().map(|channel| {
        let mut name = [0; 2];
        channel.recv(NAME, &mut name).unwrap();
        name
    });
    assert_eq!(
        (heard[0][1], heard[1][1]),
        (0, 1),
        "directions are told apart"
    );
    assert_eq!(
        heard[0][0], heard[1][0],
        "connections of two sessions are mixed"
    );
    heard[0][0]
}

#[test]
fn connections_of_clients_at_once_are_told_apart() {
    const SESSIONS: u8 = 8;
    let (reception, address) = open(terms(Ahead::On));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS)
            .map(|name| {
                let address = &address;
                scope.spawn(move || {
                    let visit = visit(address, &terms(Ahead::On)).unwrap();
                    let mut background = visit.background.unwrap().wait().unwrap();
                    say(&mut background, name);
                    let mut main = visit.channel;
                    main.send(NAME, &[name, 9]).unwrap();
                    // Until the server has heard everything.
                    main.close().unwrap();
                })
            })
            .collect();
        let mut names: Vec<u8> = (0..SESSIONS)
            .map(|_| {
                let visit = reception.next().unwrap();
                let (mut main, mut name) = (visit.channel, [0; 2]);
                main.recv(NAME, &mut name).unwrap();
                let mut background = visit.background.unwrap().wait().unwrap();
                assert_eq!(hear(&mut background), name[0]);
                name[0]
            })
            .collect();
        names.sort_unstable();
        assert_eq!(names, (0..SESSIONS).collect::<Vec<_>>());
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Whose word it is to have a background.
#[test]
fn near_parties_have_no_background_unless_they_say_so() {
    for (ahead, background) in [(Ahead::Off, false), (Ahead::On, true)] {
        let (reception, address) = open(terms(ahead));
        let client = visit(&address, &terms(ahead)).unwrap();
        let server = reception.next().unwrap();
        assert_eq!(client.background.is_some(), background);
        assert_eq!(server.background.is_some(), background);
    }
    // Half a round trip each way is emulated.
    let far = Terms {
        config: Config::new()
            .link(volvelle_net::Link::new(1 << 30, Duration::from_millis(4)).unwrap()),
        ..terms(Ahead::Auto)
    };
    let (reception, address) = open(far.clone());
    let client = visit(&address, &far).unwrap();
    assert!(client.background.is_some());
    assert!(reception.next().unwrap().background.is_some());
}

#[test]
fn strangers_do_not_get_into_a_session() {
    let (reception, address) = open(terms(Ahead::On));
    let terms = terms(Ahead::On);
    let (main, token) = knock(&address, &terms, Purpose::Session).unwrap();
    let server = reception.next().unwrap();
    let token = token.unwrap();
    let mut wrong = token;
    wrong[15] ^= 1;
    let refused = |purpose| {
        let (mut channel, _) = knock(&address, &terms, purpose).unwrap();
        let told = channel.recv(NAME, &mut [0; 2]).unwrap_err();
        assert!(matches!(told, NetError::PeerAborted { .. }), "{told}");
        assert!(matches!(reception.next(), Err(CliError::Stray)));
    };
    // Not the token; a direction that is taken.
    refused(Purpose::Background(Direction::ClientSends, wrong));
    let first = knock(
        &address,
        &terms,
        Purpose::Background(Direction::ClientSends, token),
    );
    refused(Purpose::Background(Direction::ClientSends, token));
    let second = knock(
        &address,
        &terms,
        Purpose::Background(Direction::ServerSends, token),
    );
    server.background.unwrap().wait().unwrap();
    // The session has what it waited for.
    refused(Purpose::Background(Direction::ServerSends, token));
    drop((main, first, second));
}

#[test]
fn a_client_that_opens_one_connection_of_three_is_given_up_and_blocks_nobody() {
    let (reception, address) = open(terms(Ahead::On));
    let terms = terms(Ahead::On);
    // Connected, and says nothing at all.
    let silent = TcpStream::connect(&address).unwrap();
    let (hanging, _) = knock(&address, &terms, Purpose::Session).unwrap();
    let waiting = reception.next().unwrap();
    let start = Instant::now();
    let late = thread::spawn(move || waiting.background.unwrap().wait().err());
    let client = visit(&address, &terms).unwrap();
    let server = reception.next().unwrap();
    client.background.unwrap().wait().unwrap();
    server.background.unwrap().wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "others waited");
    let error = late.join().unwrap().unwrap();
    assert!(
        matches!(&error, CliError::Net(NetError::Timeout { .. })),
        "{error}"
    );
    drop((silent, hanging));
}

#[test]
fn an_unknown_purpose_is_refused() {
    let bytes = |what: u8| std::array::from_fn(|i| if i == 0 { what } else { 7 });
    assert!((3..=255).all(|what| Purpose::from_bytes(bytes(what)).is_none()));
    for direction in [Direction::ClientSends, Direction::ServerSends] {
        let purpose = Purpose::Background(direction, [9; 16]);
        assert_eq!(Purpose::from_bytes(purpose.to_bytes()), Some(purpose));
    }
    let session = Purpose::Session;
    assert_eq!(Purpose::from_bytes(session.to_bytes()), Some(session));
}

#[test]
fn a_place_is_free_again_when_its_holder_goes() {
    let places = Places::new(1);
    let place = places.take();
    assert!(places.try_take().is_none());
    let waiting = {
        let places = places.clone();
        thread::spawn(move || drop(places.take()))
    };
    drop(place);
    waiting.join().unwrap();
    assert!(places.try_take().is_some());
}
