//! Answers the tuner's requests inside the worker process: reads requests line by line, and
//! writes replies.

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
        let request = read_request(&line?).map_err(io::Error::other)?;
        if server.answer(request)? == WorkerState::DeviceLost {
            // The driver has already released everything, and would fail if it were asked to.
            std::mem::forget(server.session.take());
            break;
        }
    }
    Ok(())
}

/// Reads a request. The tuner has checked the program in it, so its depth needs no limit.
fn read_request(line: &str) -> serde_json::Result<Request> {
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
        let mut send_reply = |reply: &Reply| write_reply(replies, reply);
        match (request, session) {
            (Request::Open(task), session) => {
                match open(&task) {
                    Ok(opened) => {
                        let notes = opened.notes().to_vec();
                        *session = Some(opened);
                        send_reply(&Reply::Ready(notes))?;
                    }
                    Err(error) => send_reply(&Reply::Failed(error.to_string()))?,
                }
                Ok(WorkerState::Usable)
            }
            (_, None) => send_reply(&Reply::Failed("the worker has no open task".to_owned()))
                .map(|()| WorkerState::Usable),
            (Request::Try { schedules, plan }, Some(session)) => {
                let state = session.try_batch(&schedules, &plan, &mut send_reply)?;
                if state == WorkerState::Usable {
                    send_reply(&Reply::End)?;
                }
                Ok(state)
            }
            (Request::Race { schedules, samples, time }, Some(session)) => {
                let rounds = Rounds { samples, time, time_limit: 20.0 * time };
                let (reply, state) = session.race(&schedules, rounds);
                send_reply(&reply)?;
                Ok(state)
            }
        }
    }
}

fn write_reply(replies: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let line = serde_json::to_string(reply).map_err(io::Error::other)?;
    writeln!(replies, "{line}")?;
    replies.flush()
}
