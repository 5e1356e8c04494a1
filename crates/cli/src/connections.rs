//! The connections of a session: one that everything goes over, and, where OTs are made ahead, one more a direction.
//!
//! ```text
//!   client                                  server
//!   connects                                            the same handshake on every connection
//!   purpose: a session                 ──▶
//!                                      ◀──  token       16 random bytes
//!   whether more connections follow    ──▶              by how long the answer took, unless that was said
//!   connects twice more, meanwhile                      while OTs are set up on the first connection
//!   purpose: a direction, the token    ──▶              goes to the session of that token
//! ```
//!
//! Where OTs are not to be made ahead there is the handshake and nothing else.
//!
//! Security: every connection passes the same TLS, both certificates pinned, so a stranger gets as far as that. The token
//! went to one peer over its own connection; one who does not know it cannot join a session, and each direction is
//! given away once. Over plain TCP whoever reads along knows the token, as everything else.
//!
//! Every connection is greeted on a thread of its own and has the time limit for it altogether, so that one who hangs keeps
//! nobody waiting.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use volvelle_net::{
    Arrival, Channel, Config, Handshake, Label, Listener, NetError, Role, Security, connect,
};
use volvelle_prim::Prg;

use crate::args::Ahead;
use crate::error::CliError;
use crate::session::give_up;

const PURPOSE: Label = Label::new("cli/purpose");
const TOKEN: Label = Label::new("cli/token");
const MORE: Label = Label::new("cli/more-connections");
/// What a time-out is said to have awaited.
const AWAITED: &str = "the connections for what is made ahead";

/// A round trip that is worth hiding. Below, two more threads a party only take the processor from the others.
const FAR: Duration = Duration::from_micros(400);
/// Connections greeted at once.
const GREETED: usize = 64;
/// Clients that are served or wait to be.
const CLIENTS: usize = 64;
/// After an error, before the next: whatever is wrong may be wrong at once again.
const PAUSE: Duration = Duration::from_millis(100);

type Token = [u8; 16];

/// What a party says of itself on each connection, and how it connects.
#[derive(Clone)]
pub struct Terms {
    /// What protects connections.
    pub security: Security,
    /// Time limit between messages, and link.
    pub config: Config,
    /// Time limit for a connection to be made and greeted.
    pub patience: Duration,
    /// What both parties must agree on.
    pub handshake: Handshake,
    /// Whether sessions have connections for OTs made ahead.
    pub ahead: Ahead,
}

/// A peer that has passed the handshake.
pub struct Visit {
    /// What everything goes over.
    pub channel: Channel,
    /// The connections for OTs made ahead, which are on their way.
    pub background: Option<Background>,
    /// One of the [`CLIENTS`] places, where there is such a limit.
    _place: Option<Place>,
}

/// Which OTs a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ClientSends = 1,
    ServerSends = 2,
}

type Arriving = Result<(Direction, Channel), CliError>;

/// Two connections that are on their way.
pub struct Background {
    arriving: Receiver<Arriving>,
    patience: Duration,
    /// The server's note of them.
    _expected: Option<Expected>,
}

impl Background {
    /// Connections that are there.
    #[cfg(test)]
    pub fn ready([client_sends, server_sends]: [Channel; 2]) -> Self {
        let (sender, arriving) = mpsc::channel();
        for end in [
            (Direction::ClientSends, client_sends),
            (Direction::ServerSends, server_sends),
        ] {
            sender.send(Ok(end)).unwrap();
        }
        Self {
            arriving,
            patience: Duration::from_secs(1),
            _expected: None,
        }
    }

    /// Waits until both are here: first the one where the client is OT sender.
    ///
    /// # Errors
    /// If they fail, or do not come in time.
    pub fn wait(self) -> Result<[Channel; 2], CliError> {
        let deadline = Instant::now() + self.patience;
        let mut ends = (None, None);
        loop {
            ends = match ends {
                (Some(client_sends), Some(server_sends)) => {
                    return Ok([client_sends, server_sends]);
                }
                ends => ends,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let late = |_| NetError::Timeout {
                awaited: AWAITED,
                after: self.patience,
            };
            match self.arriving.recv_timeout(left).map_err(late)?? {
                (Direction::ClientSends, channel) => ends.0 = Some(channel),
                (Direction::ServerSends, channel) => ends.1 = Some(channel),
            }
        }
    }
}

/// What the client says that a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Session,
    Background(Direction, Token),
}

/// Bytes of a purpose: what, and the token.
const PURPOSE_BYTES: usize = 17;

impl Purpose {
    fn to_bytes(self) -> [u8; PURPOSE_BYTES] {
        let mut bytes = [0; PURPOSE_BYTES];
        if let Self::Background(direction, token) = self {
            bytes[0] = direction as u8;
            bytes[1..].copy_from_slice(&token);
        }
        bytes
    }

    fn from_bytes([what, token @ ..]: [u8; PURPOSE_BYTES]) -> Option<Self> {
        match what {
            0 => Some(Self::Session),
            1 => Some(Self::Background(Direction::ClientSends, token)),
            2 => Some(Self::Background(Direction::ServerSends, token)),
            _ => None,
        }
    }
}

/// The client's part.
///
/// # Errors
/// If the server does not answer or wants something else.
pub fn visit(address: &str, terms: &Terms) -> Result<Visit, CliError> {
    let (channel, token) = knock(address, terms, Purpose::Session)?;
    let background = token.map(|token| {
        let (sender, arriving) = mpsc::channel();
        for direction in [Direction::ClientSends, Direction::ServerSends] {
            let (address, terms, sender) = (address.to_owned(), terms.clone(), sender.clone());
            thread::spawn(move || {
                let purpose = Purpose::Background(direction, token);
                let made = knock(&address, &terms, purpose);
                // If nobody waits for it any more, it is dropped.
                let _ = sender.send(made.map(|(channel, _)| (direction, channel)));
            });
        }
        Background {
            arriving,
            patience: terms.patience,
            _expected: None,
        }
    });
    Ok(Visit {
        channel,
        background,
        _place: None,
    })
}

/// Connects for a purpose; gets the token of a session that is to have a background.
fn knock(
    address: &str,
    terms: &Terms,
    purpose: Purpose,
) -> Result<(Channel, Option<Token>), CliError> {
    let mut channel = connect(address, Role::Client, &terms.security, &terms.config)?;
    match introduce(&mut channel, terms, purpose) {
        Ok(token) => Ok((channel, token)),
        Err(error) => {
            give_up(&mut channel, &error);
            Err(error)
        }
    }
}

fn introduce(
    channel: &mut Channel,
    terms: &Terms,
    purpose: Purpose,
) -> Result<Option<Token>, CliError> {
    terms.handshake.run(channel)?;
    if terms.ahead == Ahead::Off {
        return Ok(None);
    }
    let asked = Instant::now();
    channel.send(PURPOSE, &purpose.to_bytes())?;
    channel.flush()?;
    if purpose != Purpose::Session {
        return Ok(None);
    }
    let mut token = Token::default();
    channel.recv(TOKEN, &mut token)?;
    let more = terms.ahead == Ahead::On || asked.elapsed() > FAR;
    channel.send(MORE, &[u8::from(more)])?;
    channel.flush()?;
    Ok(more.then_some(token))
}

/// The server's part: greets whoever connects.
pub struct Reception {
    visits: Receiver<Result<Visit, CliError>>,
}

impl Reception {
    /// Begins to greet.
    pub fn open(listener: Listener, terms: Terms) -> Self {
        let (sender, visits) = mpsc::channel();
        let desk = Arc::new(Desk {
            terms,
            sessions: Sessions::default(),
            greeted: Places::new(GREETED),
            clients: Places::new(CLIENTS),
        });
        thread::spawn(move || receive(&listener, &desk, &sender));
        Self { visits }
    }

    /// Waits for the next client that has passed the handshake.
    ///
    /// # Errors
    /// If somebody did not pass. The next one may.
    pub fn next(&self) -> Result<Visit, CliError> {
        self.visits.recv().unwrap_or_else(|_| {
            Err(CliError::Net(NetError::Disconnected {
                awaited: "a client",
            }))
        })
    }
}

/// What the threads that greet have in common.
struct Desk {
    terms: Terms,
    sessions: Sessions,
    greeted: Places,
    clients: Places,
}

fn receive(listener: &Listener, desk: &Arc<Desk>, visits: &Sender<Result<Visit, CliError>>) {
    loop {
        let place = desk.greeted.take();
        match listener.arrival(None) {
            Ok(arrival) => {
                let (desk, visits) = (Arc::clone(desk), visits.clone());
                thread::spawn(move || {
                    let greeted = desk.greet(arrival);
                    drop(place);
                    if let Some(visit) = greeted.transpose() {
                        // Nobody asks any more only when the program ends.
                        let _ = visits.send(visit);
                    }
                });
            }
            Err(error) => {
                if visits.send(Err(error.into())).is_err() {
                    return;
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

/// What has come of greeting somebody.
enum Greeted {
    Session(Place, Option<Background>),
    /// A connection that this session waits for.
    Background(Direction, Sender<Arriving>),
}

impl Desk {
    /// Finds out who it is and what for; a connection of a session that is there already goes to it.
    fn greet(&self, arrival: Arrival) -> Result<Option<Visit>, CliError> {
        let Terms {
            security, config, ..
        } = &self.terms;
        let mut channel = arrival.accept(Role::Server, security, config)?;
        match self.talk(&mut channel) {
            Ok(Greeted::Session(place, background)) => Ok(Some(Visit {
                channel,
                background,
                _place: Some(place),
            })),
            Ok(Greeted::Background(direction, session)) => {
                // If the session has ended meanwhile, so does this.
                let _ = session.send(Ok((direction, channel)));
                Ok(None)
            }
            Err(error) => {
                give_up(&mut channel, &error);
                Err(error)
            }
        }
    }

    fn talk(&self, channel: &mut Channel) -> Result<Greeted, CliError> {
        channel.limit(Some(self.terms.patience));
        self.terms.handshake.run(channel)?;
        let mut purpose = Purpose::Session;
        if self.terms.ahead != Ahead::Off {
            let mut bytes = [0; PURPOSE_BYTES];
            channel.recv(PURPOSE, &mut bytes)?;
            purpose = Purpose::from_bytes(bytes).ok_or(CliError::Stray)?;
        }
        if let Purpose::Background(direction, token) = purpose {
            channel.limit(None);
            let session = self.sessions.claim(&token, direction);
            return Ok(Greeted::Background(
                direction,
                session.ok_or(CliError::Stray)?,
            ));
        }
        let place = self.clients.try_take().ok_or(CliError::Busy)?;
        let background = match self.terms.ahead {
            Ahead::Off => None,
            Ahead::Auto | Ahead::On => self.expect(channel)?,
        };
        channel.limit(None);
        Ok(Greeted::Session(place, background))
    }

    /// Gives a session its token, and hears whether two more connections will come.
    fn expect(&self, channel: &mut Channel) -> Result<Option<Background>, CliError> {
        let mut token = Token::default();
        Prg::from_os().fill_bytes(&mut token);
        let (sender, arriving) = mpsc::channel();
        let expected = self.sessions.note(token, sender);
        channel.send(TOKEN, &token)?;
        let mut more = [0];
        channel.recv(MORE, &mut more)?;
        Ok((more != [0]).then_some(Background {
            arriving,
            patience: self.terms.patience,
            _expected: Some(expected),
        }))
    }
}

/// Sessions that wait for connections.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<Vec<Session>>>);

struct Session {
    token: Token,
    /// Which directions have a connection.
    claimed: Vec<Direction>,
    sender: Sender<Arriving>,
}

/// Keeps a session in the list.
struct Expected {
    sessions: Sessions,
    token: Token,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, token: Token, sender: Sender<Arriving>) -> Expected {
        self.lock().push(Session {
            token,
            claimed: Vec::new(),
            sender,
        });
        Expected {
            sessions: self.clone(),
            token,
        }
    }

    /// The session of this token, if it still waits for a connection in this direction.
    fn claim(&self, token: &Token, direction: Direction) -> Option<Sender<Arriving>> {
        let mut sessions = self.lock();
        let session = sessions.iter_mut().find(|session| {
            // Every byte is looked at: how long it takes tells nothing about a token.
            let differences = session
                .token
                .iter()
                .zip(token)
                .fold(0, |d, (a, b)| d | (a ^ b));
            differences == 0
        })?;
        if session.claimed.contains(&direction) {
            return None;
        }
        session.claimed.push(direction);
        Some(session.sender.clone())
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let Self { sessions, token } = self;
        sessions.lock().retain(|session| session.token != *token);
    }
}

/// A number of places.
#[derive(Clone)]
pub struct Places(Arc<(Mutex<usize>, Condvar)>);

/// One of them, free again when this is dropped.
pub struct Place(Places);

impl Places {
    /// So many.
    pub fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one is free.
    pub fn take(&self) -> Place {
        let none = |free: &mut usize| *free == 0;
        let free = self.0.1.wait_while(self.free(), none);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Place(self.clone())
    }

    fn try_take(&self) -> Option<Place> {
        let mut free = self.free();
        *free = free.checked_sub(1)?;
        Some(Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.0.1.notify_one();
    }
}

#[cfg(test)]
mod tests;
