use std::collections::HashSet;
use std::thread;

use volvelle_net::testing::run_pair;
use volvelle_net::{Phase, memory_pair};

use super::*;
use crate::testing::ideal_ends;

const SET: Set = Set::K16;

/// Outputs of a group that is handed out as a whole.
const GROUP: usize = SET.group_outputs(0);

/// Both ends of so many lanes, on ideal seeds; Δ is the senders'.
fn lanes(count: usize) -> (Vec<Lane<SenderHalf>>, Vec<Lane<ReceiverHalf>>) {
    let (mut sender, mut receiver) = ideal_ends(5);
    let code = super::super::code(SET, Block(7));
    run_pair(
        |ch| senders(ch, &mut sender, (SET, &code), count).unwrap(),
        |ch| receivers(ch, &mut receiver, (SET, &code), count).unwrap(),
    )
}

fn draw(lane: &mut dyn CotSource, ch: &mut Channel, count: usize) -> Result<Vec<Block>, OtError> {
    let mut out = vec![Block::ZERO; count];
    lane.extend(ch, &mut out)?;
    ch.flush()?;
    Ok(out)
}

/// Draws each lane's `counts`, one after the other, all lanes at once; both ends' blocks.
fn draw_all(counts: &[Vec<usize>]) -> (Block, Vec<[Vec<Block>; 2]>) {
    let (senders, receivers) = lanes(counts.len());
    let delta = senders[0].delta();
    let pairs: Vec<_> = senders.into_iter().zip(receivers).zip(counts).collect();
    let all = thread::scope(|scope| {
        let threads: Vec<_> = pairs
            .into_iter()
            .map(|((mut sender, mut receiver), counts)| {
                scope.spawn(move || {
                    let calls = |lane: &mut dyn CotSource, ch: &mut Channel| {
                        let draws = counts.iter().map(|&count| draw(lane, ch, count).unwrap());
                        draws.flatten().collect::<Vec<_>>()
                    };
                    let (q, r) =
                        run_pair(|ch| calls(&mut sender, ch), |ch| calls(&mut receiver, ch));
                    ([q, r], sender, receiver)
                })
            })
            .collect();
        // Ends are dropped when all are done.
        let done: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        done.into_iter().map(|(blocks, ..)| blocks).collect()
    });
    (delta, all)
}

#[test]
fn all_lanes_outputs_are_correlated_and_none_is_given_twice() {
    // Over several iterations, a lane with little to do and one with nothing among them.
    let made = SET.handed_out();
    let counts = [
        vec![1, 2 * made, 3],
        vec![made + 17],
        vec![5000, 5000],
        vec![],
    ];
    let (delta, all) = draw_all(&counts);
    let mut seen = HashSet::new();
    for ([q, r], counts) in all.iter().zip(&counts) {
        assert_eq!(q.len(), counts.iter().sum::<usize>());
        for (&q, &r) in q.iter().zip(r) {
            assert!(!q.lsb() && r == q ^ delta.keep_if(u8::from(r.lsb())));
            assert!(seen.insert(q));
        }
        let ones = r.iter().filter(|r| r.lsb()).count() as f64;
        let half = r.len() as f64 / 2.0;
        assert!((ones - half).abs() <= 6.0 * half.sqrt());
    }
}

#[test]
fn a_lane_that_is_dropped_at_both_ends_leaves_the_others_working() {
    let (mut senders, mut receivers) = lanes(2);
    let run = |lane: &mut dyn CotSource, ch: &mut Channel, count| draw(lane, ch, count).unwrap();
    let mut draw_on = |lane: usize, count| {
        let (sender, receiver) = (&mut senders[lane], &mut receivers[lane]);
        run_pair(|ch| run(sender, ch, count), |ch| run(receiver, ch, count));
    };
    draw_on(1, 3 * GROUP);
    draw_on(0, 2 * SET.handed_out());
    draw_on(1, SET.handed_out());
    senders.pop();
    receivers.pop();
    let (sender, receiver) = (&mut senders[0], &mut receivers[0]);
    let (q, r) = run_pair(
        |ch| run(sender, ch, 2 * SET.handed_out()),
        |ch| run(receiver, ch, 2 * SET.handed_out()),
    );
    let delta = sender.delta();
    assert!(
        q.iter()
            .zip(&r)
            .all(|(&q, &r)| r == q ^ delta.keep_if(u8::from(r.lsb())))
    );
}

#[test]
fn an_iteration_sends_what_the_formula_says() {
    let (mut senders, mut receivers) = lanes(3);
    let handed_out = SET.handed_out();
    let (sent, _) = run_pair(
        |ch| {
            ch.set_phase(Phase::Preprocessing);
            let mut bits = vec![];
            for count in [handed_out, 1] {
                draw(&mut senders[1], ch, count).unwrap();
                bits.push(ch.meter().total().bits());
            }
            bits
        },
        |ch| draw(&mut receivers[1], ch, handed_out + 1).unwrap(),
    );
    let one_group = 8 * (u64::from(SET.depth()) - 1) * 128;
    assert_eq!(sent[0], bits(SET));
    assert_eq!(sent[1], bits(SET) + NUMBER_BITS + one_group);
    let supply = senders[1].supply();
    assert_eq!(supply.made as usize, SET.made() + GROUP);
    assert!((supply.bits_per_cot - bits(SET) as f64 / handed_out as f64).abs() < 1e-12);
}

#[test]
fn a_task_that_is_named_twice_or_over_is_refused() {
    let all = tasks(SET) as u64;
    // In the first iteration; in one that is over.
    for (good, bad, outputs) in [
        (vec![3], 3, GROUP),
        ((0..all).collect(), 0, SET.handed_out()),
        ((0..all).collect(), all - 1, SET.handed_out()),
    ] {
        let (mut senders, mut receivers) = lanes(2);
        let sender = &mut senders[0];
        let open = sender.pool.lock().open.remove(&0).unwrap();
        let (_, refused) = run_pair(
            |ch| {
                for task in good {
                    ch.send(TASK, &task.to_le_bytes()).unwrap();
                    let first = task as usize;
                    let end = [first + 1, SET.groups()][usize::from(task + 1 == all)];
                    for group in (first..end).rev() {
                        sender.grower.grow(ch, &open.iteration, group).unwrap();
                    }
                }
                ch.send(TASK, &bad.to_le_bytes()).unwrap();
                ch.flush().unwrap();
            },
            |ch| draw(&mut receivers[0], ch, outputs + 1).unwrap_err(),
        );
        let OtError::LaneTask { iteration, task } = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((iteration, task), (0, bad));
    }
}

#[test]
fn a_lane_waits_for_the_next_iteration_until_the_others_have_left() {
    let (_senders, mut receivers) = lanes(3);
    let far = tasks(SET) as u64 * 1000;
    let last = receivers.pop().unwrap();
    let (end, peer) = memory_pair();
    thread::scope(|scope| {
        let (mut end, mut peer) = (end, peer);
        let mut lane = receivers.pop().unwrap();
        peer.send(TASK, &far.to_le_bytes()).unwrap();
        peer.flush().unwrap();
        let waits = scope.spawn(move || draw(&mut lane, &mut end, 1).unwrap_err());
        while last.pool.lock().waiting == 0 {
            thread::yield_now();
        }
        drop(last);
        assert!(!waits.is_finished());
        receivers.clear();
        assert!(matches!(waits.join().unwrap(), OtError::OtherLane));
    });
}

#[test]
fn lanes_that_all_wait_fail() {
    let (_senders, receivers) = lanes(2);
    let far = tasks(SET) as u64;
    thread::scope(|scope| {
        let threads: Vec<_> = receivers
            .into_iter()
            .map(|mut lane| {
                scope.spawn(move || {
                    let (mut end, mut peer) = memory_pair();
                    peer.send(TASK, &far.to_le_bytes()).unwrap();
                    peer.flush().unwrap();
                    draw(&mut lane, &mut end, 1).unwrap_err()
                })
            })
            .collect();
        for thread in threads {
            assert!(matches!(thread.join().unwrap(), OtError::OtherLane));
        }
    });
}

#[test]
fn one_that_fails_with_the_next_iteration_half_made_fails_all() {
    let (_senders, mut receivers) = lanes(3);
    let (mut end, mut peer) = memory_pair();
    // The other two neither wait nor leave.
    let last = tasks(SET) as u64 - 1;
    peer.send(TASK, &last.to_le_bytes()).unwrap();
    drop(peer);
    let failed = draw(&mut receivers[0], &mut end, 1).unwrap_err();
    assert!(matches!(failed, OtError::Net(_)), "{failed:?}");
    let (mut end, mut peer) = memory_pair();
    peer.send(TASK, &(last + 1).to_le_bytes()).unwrap();
    peer.flush().unwrap();
    let failed = draw(&mut receivers[1], &mut end, 1).unwrap_err();
    assert!(matches!(failed, OtError::OtherLane), "{failed:?}");
}

#[test]
fn a_lane_far_ahead_of_another_waits_for_it() {
    let pool = Pool::new(SET, 2, Iteration::empty(SET, Security::SemiHonest));
    let tasks = tasks(SET) as u64;
    // A lane does all tasks of each iteration but the first, which is another's.
    for number in 0..OPEN as u64 - 1 {
        for task in 1..tasks {
            pool.named(number * tasks + task).unwrap();
        }
        pool.begin(number, Iteration::empty(SET, Security::SemiHonest))
            .unwrap();
    }
    thread::scope(|scope| {
        let ahead = scope
            .spawn(|| pool.begin(OPEN as u64 - 1, Iteration::empty(SET, Security::SemiHonest)));
        while pool.lock().waiting == 0 {
            thread::yield_now();
        }
        assert!(!ahead.is_finished());
        pool.named(0).unwrap();
        ahead.join().unwrap().unwrap();
    });
    assert_eq!(pool.lock().open.len(), OPEN);
}

#[test]
fn seeds_come_while_others_have_groups_to_make() {
    for (set, lanes) in [(Set::K16, 2), (Set::K17, 2), (Set::K19, 4), (Set::K16, 256)] {
        let pool = Pool::new(set, lanes, Iteration::empty(set, Security::SemiHonest));
        let order: Vec<usize> = (0..tasks(set))
            .map(|_| pool.next().unwrap().index)
            .collect();
        let last = tasks(set) - 1;
        let place = order.iter().position(|&index| index == last).unwrap();
        let work = set.groups() - last;
        assert_eq!(last - place, (lanes * work).min(last), "{set:?}");
        let sorted: HashSet<usize> = order.into_iter().collect();
        assert_eq!(sorted.len(), tasks(set));
    }
}
