//! The model between two parties: the server has the weights, the client the images and, alone, the answers.
//!
//! Batch by batch, in Z_{2^37} (see [`super::fixed`] for the formats):
//!
//! ```text
//!   client: x                server: W1, b1, W2, b2
//!   ⟨h⟩ = W1·x + b1          client knows x, server W1      MatVecClear, 5-bit pixels
//!   ⟨a⟩ = GELU(⟨h⟩)                                         table lookup
//!   ⟨z⟩ = W2·⟨a⟩ + b2        server knows W2                MatVecShared
//!   ⟨c⟩ = argmax ⟨z⟩                                        comparisons
//!   server: its share of c ──▶ client: c                    opened to the client alone
//! ```
//!
//! Everything but the arrows above it is preprocessing: it is done before the batch's images are looked at.
//!
//! Security: semi-honest, as the parts. The server receives masked values and shares only; the client, besides
//! those, its answers. Weights and scores are never opened.

use std::time::Instant;

use volvelle_arith::{MatVecClear, MatVecShared, Matrix, MatrixShape, Ring, Variant};
use volvelle_lut::Protocol;
use volvelle_lut::plan::{Machine, Planner};
use volvelle_math::{Argmax, ArgmaxShape, Gelu, GeluPlan};
use volvelle_net::{Channel, Label, Link, Phase, Role, Traffic};
use volvelle_ot::{Ot, OtConfig, OtDemand, PhasedCost};
use volvelle_prim::pack;

use super::fixed::{FixedModel, RING_BITS, W1_BITS, W2_BITS, gelu_plan};
use super::{CLASSES, HIDDEN, PIXELS};
use crate::args::plan::ProtocolChoice;
use crate::connections::Background;
use crate::error::CliError;
use crate::report::{Cost, SessionReport};

const JOB: Label = Label::new("digits/job");
const READY: Label = Label::new("digits/ready");
const CLASS: Label = Label::new("digits/class");

/// Bits of a pixel, 0..16.
const PIXEL_BITS: u32 = 5;
/// Most images of one session.
const MAX_IMAGES: u64 = 1 << 20;

/// Is told how many images are done, and what is being done now.
pub type OnProgress<'a> = &'a mut dyn FnMut(usize, &'static str) -> Result<(), CliError>;

/// What a party knows that the other does not.
#[derive(Clone, Copy)]
enum Secret<'a> {
    Client { images: &'a [[u8; PIXELS]] },
    Server { model: &'a FixedModel },
}

/// How a session is run.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Images at once. Both parties must say the same.
    pub batch: usize,
    /// How GELU's segments are looked up. Both parties must say the same.
    pub protocol: ProtocolChoice,
    /// What the client plans for.
    pub link: Link,
}

/// What the client has settled before it connects.
pub struct Plan {
    batch: usize,
    /// With its protocol.
    gelu: GeluPlan,
}

/// The client's part: the classes of its images are in the report.
///
/// # Errors
/// If the connection or a protocol fails.
pub fn query(
    ch: &mut Channel,
    background: Option<Background>,
    images: &[[u8; PIXELS]],
    plan: Plan,
    progress: OnProgress<'_>,
) -> Result<SessionReport, CliError> {
    let Plan { batch, gelu } = plan;
    let count = images.len() as u64;
    check_images(count)?;
    let job = Job {
        count,
        protocol: gelu.protocol(),
    };
    ch.send(JOB, &job.to_bytes())?;
    let layers = Layers::new(Secret::Client { images }, gelu)?;
    session(ch, background, &layers, (images.len(), batch), progress)
}

/// The server's part.
///
/// # Errors
/// If the connection or a protocol fails, or the client asks for too much or for what is not known here.
pub fn serve(
    ch: &mut Channel,
    background: Option<Background>,
    model: &FixedModel,
    settings: Settings,
) -> Result<SessionReport, CliError> {
    let mut job = [0; JOB_BYTES];
    ch.recv(JOB, &mut job)?;
    let Job { count, protocol } = Job::from_bytes(&job)?;
    check_images(count)?;
    settings.admit(protocol)?;
    let gelu = model.gelu.clone().with_protocol(protocol)?;
    let layers = Layers::new(Secret::Server { model }, gelu)?;
    let images = (count as usize, settings.batch);
    session(ch, background, &layers, images, &mut |_, _| Ok(()))
}

impl Settings {
    /// The client's plan for so many images. It is made with the timings of this machine that are there, if any: taking new ones
    /// would keep both parties waiting.
    ///
    /// # Errors
    /// If the protocol does not take such lookups.
    pub fn plan(&self, images: usize) -> Result<Plan, CliError> {
        let gelu = gelu_plan()?;
        let protocol = match self.protocol {
            ProtocolChoice::Named(protocol) => protocol,
            ProtocolChoice::Auto | ProtocolChoice::Grotto => {
                let demand = gelu.lookups(self.batch.min(images) * HIDDEN)?;
                let planner = Planner::new(Machine::known(), self.link);
                planner.plan(&demand)?.chosen().protocol
            }
        };
        Ok(Plan {
            batch: self.batch,
            gelu: gelu.with_protocol(protocol)?,
        })
    }

    /// The server takes the client's choice where it is left to the client.
    fn admit(&self, chosen: Protocol) -> Result<(), CliError> {
        match self.protocol {
            ProtocolChoice::Named(named) if named != chosen => Err(CliError::Choice {
                got: chosen.name().to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// What the client asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Job {
    count: u64,
    protocol: Protocol,
}

/// Bytes of a job: the count, and the protocol's name padded with spaces. An agreement constant.
const JOB_BYTES: usize = 8 + 24;

impl Job {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.count.to_le_bytes().to_vec();
        bytes.extend(format!("{:<24}", self.protocol.name()).bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; JOB_BYTES]) -> Result<Self, CliError> {
        let mut count = [0; 8];
        count.copy_from_slice(&bytes[..8]);
        let name = String::from_utf8_lossy(&bytes[8..]);
        let protocol = name.trim_end().parse().map_err(|_| CliError::Choice {
            got: name.trim_end().escape_debug().to_string(),
        })?;
        Ok(Self {
            count: u64::from_le_bytes(count),
            protocol,
        })
    }
}

fn check_images(count: u64) -> Result<(), CliError> {
    match count {
        1..=MAX_IMAGES => Ok(()),
        got => Err(CliError::TooMany {
            got,
            max: MAX_IMAGES,
        }),
    }
}

fn session(
    ch: &mut Channel,
    background: Option<Background>,
    layers: &Layers<'_>,
    (images, batch): (usize, usize),
    progress: OnProgress<'_>,
) -> Result<SessionReport, CliError> {
    let start = Instant::now();
    progress(0, "set-up")?;
    let demand = layers.demand(images, batch)?;
    let busier = demand.client_sends.max(demand.server_sends);
    let mut ot = Ot::setup(ch, OtConfig::for_demand(busier))?;
    let mut report = SessionReport {
        images: images as u64,
        protocol: layers.gelu.protocol().name().to_owned(),
        ahead: background.is_some(),
        ..SessionReport::default()
    };
    let mut connected = Traffic::default();
    if let Some(background) = background {
        let [client_sends, server_sends] = background.wait()?;
        connected = client_sends.meter().total() + server_sends.meter().total();
        ot = ot.make_ahead_for(client_sends, server_sends, demand);
    }
    report.setup = Cost::of(&ch.meter().phase(Phase::Setup));
    report.setup.add_background(connected);
    for first in (0..images).step_by(batch) {
        let count = batch.min(images - first);
        progress(first, "preprocessing")?;
        let before = ch.meter().clone();
        ch.set_phase(Phase::Preprocessing);
        let prepared = Prepared::new(ch, &mut ot, layers, count)?;
        if report.ahead {
            wait_for_peer(ch)?;
        }
        progress(first, "online")?;
        ch.set_phase(Phase::Online);
        report.classes.extend(prepared.run(ch, layers, first)?);
        let after = ch.meter();
        let spent = |phase| Cost::of(&(after.phase(phase) - before.phase(phase)));
        report.prep.add_batch(spent(Phase::Preprocessing));
        report.online.add_batch(spent(Phase::Online));
        report.batches += 1;
    }
    // OTs of several batches may have been made at once, so this is known for all together.
    report.prep.add_background(ot.background() - connected);
    progress(images, "done")?;
    report.wall_s = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Parties that do not make OTs together may come to the end of preprocessing at different times. They begin the online phase
/// together, so that its time is its own.
fn wait_for_peer(ch: &mut Channel) -> Result<(), CliError> {
    ch.send(READY, &[])?;
    Ok(ch.recv(READY, &mut [])?)
}

/// The layers' public shapes, at the server their matrices, and what else this party alone knows.
struct Layers<'a> {
    secret: Secret<'a>,
    first: (MatrixShape, Option<Matrix>),
    gelu: GeluPlan,
    second: (MatrixShape, Option<Matrix>),
    argmax: ArgmaxShape,
}

impl<'a> Layers<'a> {
    fn new(secret: Secret<'a>, gelu: GeluPlan) -> Result<Self, CliError> {
        let ring = Ring::new(RING_BITS)?;
        let first = MatrixShape {
            rows: HIDDEN,
            cols: PIXELS,
            weight_bits: W1_BITS,
            ring,
        };
        let second = MatrixShape {
            rows: CLASSES,
            cols: HIDDEN,
            weight_bits: W2_BITS,
            ring,
        };
        let (w1, w2) = match secret {
            Secret::Client { .. } => (None, None),
            Secret::Server { model } => (
                Some(Matrix::new(HIDDEN, PIXELS, model.w1.clone())?),
                Some(Matrix::new(CLASSES, HIDDEN, model.w2.clone())?),
            ),
        };
        let argmax = ArgmaxShape {
            ring,
            classes: CLASSES,
            variant: Variant::Cheetah,
        };
        Ok(Self {
            secret,
            first: (first, w1),
            gelu,
            second: (second, w2),
            argmax,
        })
    }

    /// What a batch sends and uses.
    fn cost(&self, count: usize) -> Result<PhasedCost, CliError> {
        let class_bits = self.argmax.index_ring()?.bits();
        let open = PhasedCost {
            prep: volvelle_ot::Cost::default(),
            online: volvelle_ot::Cost {
                server_bits: 8 * pack::packed_len(count, class_bits) as u64,
                rounds: 1,
                ..volvelle_ot::Cost::default()
            },
        };
        Ok(MatVecClear::cost(&self.first.0, PIXEL_BITS, count)?
            .then(Gelu::cost(&self.gelu, count * HIDDEN)?)
            .then(MatVecShared::cost(&self.second.0, count)?)
            .then(Argmax::cost(&self.argmax, count)?)
            .then(open))
    }

    /// OTs that a session uses.
    fn demand(&self, images: usize, batch: usize) -> Result<OtDemand, CliError> {
        let of = |count: usize, times: usize| match (count, times) {
            (0, _) | (_, 0) => Ok(OtDemand::default()),
            _ => self
                .cost(count)
                .map(|cost| OtDemand::of(&cost.total()).times(times as u64)),
        };
        Ok(of(batch, images / batch)? + of(images % batch, 1)?)
    }
}

/// One party's preprocessing of a batch.
struct Prepared {
    /// Of the numbers.
    ring: Ring,
    /// Of the classes.
    class_ring: Ring,
    count: usize,
    first: MatVecClear,
    gelu: Gelu,
    second: MatVecShared,
    argmax: Argmax,
}

impl Prepared {
    fn new(
        ch: &mut Channel,
        ot: &mut Ot,
        layers: &Layers<'_>,
        count: usize,
    ) -> Result<Self, CliError> {
        let ((first, w1), (second, w2)) = (&layers.first, &layers.second);
        let (gelu, argmax) = (&layers.gelu, &layers.argmax);
        Ok(Self {
            ring: argmax.ring,
            class_ring: argmax.index_ring()?,
            count,
            first: ch.span("layer 1", |ch| {
                MatVecClear::prepare(ch, ot, first, PIXEL_BITS, w1.as_ref(), count)
            })?,
            gelu: ch.span("gelu", |ch| Gelu::prepare(ch, ot, gelu, count * HIDDEN))?,
            second: ch.span("layer 2", |ch| {
                MatVecShared::prepare(ch, ot, second, w2.as_ref(), count)
            })?,
            argmax: ch.span("argmax", |ch| Argmax::prepare(ch, ot, argmax, count))?,
        })
    }

    /// The online phase: the classes at the client, nothing at the server.
    fn run(
        self,
        ch: &mut Channel,
        layers: &Layers<'_>,
        first_image: usize,
    ) -> Result<Vec<u8>, CliError> {
        let secret = layers.secret;
        let Self {
            ring,
            class_ring,
            count,
            ..
        } = self;
        let pixels: Vec<u64> = match secret {
            Secret::Client { images } => images[first_image..][..count]
                .iter()
                .flatten()
                .map(|pixel| u64::from(*pixel))
                .collect(),
            Secret::Server { .. } => Vec::new(),
        };
        let mut hidden = ch.span("layer 1", |ch| self.first.run(ch, &pixels))?;
        add_bias(ring, secret, |model| &model.b1, &mut hidden);
        let active = self.gelu.run(ch, &hidden)?;
        let mut scores = ch.span("layer 2", |ch| self.second.run(ch, &active))?;
        add_bias(ring, secret, |model| &model.b2, &mut scores);
        let classes = self.argmax.run(ch, &scores)?;
        open_to_client(ch, class_ring, &classes)
    }
}

/// Adds the bias to each vector of shares; it is the server's, so the client adds nothing.
fn add_bias(
    ring: Ring,
    secret: Secret<'_>,
    bias: impl Fn(&FixedModel) -> &Vec<i64>,
    shares: &mut [u64],
) {
    if let Secret::Server { model } = secret {
        let bias = bias(model);
        for vector in shares.chunks_exact_mut(bias.len()) {
            for (share, bias) in vector.iter_mut().zip(bias) {
                *share = ring.add(*share, ring.from_signed(*bias));
            }
        }
    }
}

/// Makes the classes public to the client: the server sends its shares and receives nothing.
fn open_to_client(ch: &mut Channel, ring: Ring, shares: &[u64]) -> Result<Vec<u8>, CliError> {
    match ch.role() {
        Role::Server => {
            let mut message = Vec::new();
            pack::pack_append(shares, ring.bits(), &mut message);
            ch.send(CLASS, &message)?;
            ch.flush()?;
            Ok(Vec::new())
        }
        Role::Client => {
            let mut message = vec![0; pack::packed_len(shares.len(), ring.bits())];
            ch.recv(CLASS, &mut message)?;
            let mut theirs = vec![0; shares.len()];
            pack::unpack_into(&message, ring.bits(), &mut theirs);
            Ok(shares
                .iter()
                .zip(&theirs)
                .map(|(own, other)| ring.add(*own, *other) as u8)
                .collect())
        }
    }
}

#[cfg(test)]
mod tests;
