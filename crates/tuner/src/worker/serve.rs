//! The worker's side of the protocol: answers requests.

use std::io::{self, BufRead, Write};

use serde::Deserialize;

use super::protocol::{Reply, Request};
use super::session::{Session, WorkerState, open};
use crate::bench::Rounds;

/// Answers requests until the input ends or the device is unusable for this process. In the latter
/// case the tuner has been told which candidate is at fault, if that is known, and starts another
/// worker.
pub fn serve(requests: impl BufRead, replies: impl Write) -> io::Result<()> {
    let mut server = Server { session: None, replies };
    for line in requests.lines() {
        let request = read(&line?).map_err(io::Error::other)?;
        if server.answer(request)? == WorkerState::Lost {
            // The driver has already released everything, and would fail if it were asked to.
            std::mem::forget(server.session.take());
            break;
        }
    }
    Ok(())
}

/// Reads a request. The tuner has checked the program in it, so its depth needs no limit.
fn read(line: &str) -> serde_json::Result<Request> {
    let mut reader = serde_json::Deserializer::from_str(line);
    reader.disable_recursion_limit();
    Request::deserialize(&mut reader)
}

struct Server<W> {
    session: Option<Box<dyn Session>>,
    replies: W,
}

impl<W: Write> Server<W> {
    fn answer(&mut self, request: Request) -> io::Result<WorkerState> {
        let Server { session, replies } = self;
        let mut say = |reply: &Reply| say(replies, reply);
        match (request, session) {
            (Request::Open(task), session) => {
                match open(&task) {
                    Ok(opened) => {
                        let notes = opened.notes().to_vec();
                        *session = Some(opened);
                        say(&Reply::Ready(notes))?;
                    }
                    Err(error) => say(&Reply::Failed(error.to_string()))?,
                }
                Ok(WorkerState::Sound)
            }
            (_, None) => say(&Reply::Failed("no task is open".to_owned())).map(|()| WorkerState::Sound),
            (Request::Try { schedules, plan }, Some(session)) => {
                let state = session.batch(&schedules, &plan, &mut say)?;
                if state == WorkerState::Sound {
                    say(&Reply::End)?;
                }
                Ok(state)
            }
            (Request::Race { schedules, samples, time }, Some(session)) => {
                let rounds = Rounds { samples, time, cap: 20.0 * time };
                let (reply, state) = session.race(&schedules, rounds);
                say(&reply)?;
                Ok(state)
            }
        }
    }
}

fn say(replies: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let line = serde_json::to_string(reply).map_err(io::Error::other)?;
    writeln!(replies, "{line}")?;
    replies.flush()
}
