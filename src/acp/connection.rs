//! One agent's process and the tasks around it: reading, writing, standard error, and its end.
//!
//! What the agent says goes to the core in batches through one bounded queue, so that order is kept and a flood fills the
//! agent's own pipe instead of our memory. What we say goes through one writer task.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::ChildStdout;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use super::batch::Batch;
use super::encode;
use super::lines::{Line, LineSplitter};
use super::output::Output;
use super::pace::{Brought, Pace};
use super::protocol::{Incoming, Protocol};
use crate::core::config::AgentSpec;
use crate::core::event::{Departure, Event};
use crate::core::ids::{CallId, ConnId};
use crate::core::message::{AgentCall, AgentNotice, Reply};
use crate::core::requests::ReplyToken;
use crate::process::{AgentProcess, Spawn};

/// Bytes read at once. With [`QUEUE`] batches this bounds what lies between the agent's pipe and the core to 4 MiB.
const READ_BUFFER: usize = 256 * 1024;
/// Bytes that lie in the pipe of an agent's output; what any user may have on Linux (`man 7 pipe`).
#[cfg(target_os = "linux")]
const PIPE: std::ffi::c_int = 1024 * 1024;
/// Batches that may wait for the core.
pub const QUEUE: usize = 16;
/// What may wait to be written to an agent that does not read: then it is taken for hung.
const MAX_UNWRITTEN: usize = 64 * 1024 * 1024;
/// Lines of standard error that are kept.
const STDERR_LINES: usize = 200;
/// Lines of standard error that are shown when an agent ends.
const STDERR_SHOWN: usize = 20;
/// Longest part of a line of standard error that is kept, in bytes.
const STDERR_LINE: usize = 2000;
/// How long an agent may take to end after we asked; it is killed then.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// How long an agent that is to end may take to read our last answers.
const FLUSH: Duration = Duration::from_millis(200);
/// How often it is looked whether it did.
const FLUSH_STEP: Duration = Duration::from_millis(5);
/// How long the rest of an ended agent's output is waited for.
const DRAIN: Duration = Duration::from_millis(500);

/// Where batches of events of one or more connections go.
pub type Events = mpsc::Sender<Vec<Event>>;

/// A running agent, as its owner sees it. Dropping it ends the agent.
#[derive(Debug)]
pub struct Connection {
    protocol: Arc<Mutex<Protocol>>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<&'static str>>,
    done: JoinHandle<()>,
}

impl Connection {
    /// Starts the agent. Its messages, and at the very end [`Event::Gone`], go to `events`.
    ///
    /// # Errors
    /// One sentence that says why it could not be started, for the user.
    pub fn start(conn: ConnId, spec: &AgentSpec, cwd: &Path, max_line: usize, events: Events) -> Result<Self, String> {
        let spawn = Spawn {
            command: spec.command.clone(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone().unwrap_or_else(|| cwd.to_owned()),
        };
        let mut process = AgentProcess::spawn(&spawn).map_err(|error| error.to_string())?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err("its standard streams could not be opened.".to_owned());
        };
        widen(&stdout);
        let stdout = Output::new(stdout).map_err(|error| format!("its standard output cannot be read: {error}"))?;
        let context = tracing::info_span!("agent", conn = conn.0, pid = process.pid());
        tracing::info!(parent: &context, command = ?spawn.command, "started");
        let protocol = Arc::new(Mutex::new(Protocol::new(conn)));
        let (outgoing, to_write) = mpsc::unbounded_channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let (stop, stopped) = oneshot::channel();
        let parts = Parts {
            reader: tokio::spawn(
                read(conn, stdout, Arc::clone(&protocol), max_line, events.clone()).instrument(context.clone()),
            ),
            writer: tokio::spawn(write(stdin, to_write, Arc::clone(&unwritten)).instrument(context.clone())),
            stderr: tokio::spawn(keep_tail(stderr, Arc::clone(&tail)).instrument(context.clone())),
        };
        let still_unwritten = Arc::clone(&unwritten);
        let life = async move {
            let how = live(process, parts, stopped, &still_unwritten).await;
            tracing::info!(how, "ended");
            let lines: Vec<String> = tail.lock().iter().rev().take(STDERR_SHOWN).rev().cloned().collect();
            let gone = Event::Gone(conn, Departure::Ended { how, stderr: lines });
            // The owner being gone too is no news to anybody.
            let _ = events.send(vec![gone]).await;
        };
        let done = tokio::spawn(life.instrument(context));
        Ok(Self { protocol, outgoing, unwritten, stop: Some(stop), done })
    }

    /// Sends a request.
    pub fn call(&mut self, id: CallId, call: &AgentCall) {
        let line = self.protocol.lock().call(id, call);
        self.send(line);
    }

    /// Sends a notification.
    pub fn notify(&mut self, notice: &AgentNotice) {
        self.send(encode::notice(notice));
    }

    /// Answers a request.
    pub fn reply(&mut self, token: ReplyToken, reply: Reply) {
        self.send(encode::reply(token, reply));
    }

    fn send(&mut self, line: Vec<u8>) {
        // Before this line: one that is longer than the limit itself is no sign of a hung agent.
        let waiting = self.unwritten.fetch_add(line.len(), Ordering::Relaxed);
        if waiting > MAX_UNWRITTEN {
            self.stop_because("it does not read what is sent to it");
        }
        // A closed channel means that the agent is ending; `Event::Gone` follows.
        let _ = self.outgoing.send(line);
    }

    /// Ends the agent; [`Event::Gone`] follows.
    pub fn stop(&mut self) {
        self.stop_because("ended on request");
    }

    fn stop_because(&mut self, why: &'static str) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone if the agent has ended by itself.
            let _ = stop.send(why);
        }
    }

    /// Waits until the process, and what it left in its group, are gone.
    pub async fn wait(self) {
        let Self { outgoing, stop, done, .. } = self;
        drop((outgoing, stop));
        // A panic of that task was logged by the hook.
        let _ = done.await;
    }
}

struct Parts {
    reader: JoinHandle<()>,
    /// Fails when the agent has closed its standard input.
    writer: JoinHandle<std::io::Result<()>>,
    stderr: JoinHandle<()>,
}

/// Lives with the process until it is gone, and says how it ended.
async fn live(
    mut process: AgentProcess,
    mut parts: Parts,
    stopped: oneshot::Receiver<&'static str>,
    unwritten: &AtomicUsize,
) -> String {
    enum End {
        Exited(std::io::Result<crate::process::Exit>),
        Silent,
        Deaf,
        Stopped(&'static str),
    }
    let end = tokio::select! {
        exit = process.wait() => End::Exited(exit),
        _ = &mut parts.reader => End::Silent,
        Ok(Err(_)) = &mut parts.writer => End::Deaf,
        why = stopped => End::Stopped(why.unwrap_or("ended on request")),
    };
    let how = match end {
        End::Exited(exit) => {
            // What it said before it ended is still in the pipe.
            let _ = timeout(DRAIN, &mut parts.reader).await;
            describe(exit)
        }
        End::Silent => left_or_ended(&mut process, &parts, "output").await,
        End::Deaf => {
            let how = left_or_ended(&mut process, &parts, "input").await;
            // As above.
            let _ = timeout(DRAIN, &mut parts.reader).await;
            how
        }
        End::Stopped(why) => {
            let all_written = async {
                while unwritten.load(Ordering::Relaxed) > 0 {
                    sleep(FLUSH_STEP).await;
                }
            };
            // The last answers are worth a moment; an agent that does not read loses them.
            let _ = timeout(FLUSH, all_written).await;
            // Closes the agent's standard input, which is how it learns that it should leave.
            parts.writer.abort();
            end_process(&mut process).await;
            why.to_owned()
        }
    };
    parts.reader.abort();
    parts.writer.abort();
    let _ = timeout(DRAIN, &mut parts.stderr).await;
    parts.stderr.abort();
    how
}

/// An agent that has closed one of its streams is about to leave; if it does not, it is of no use any more.
async fn left_or_ended(process: &mut AgentProcess, parts: &Parts, closed: &str) -> String {
    if let Ok(exit) = timeout(DRAIN, process.wait()).await {
        return describe(exit);
    }
    parts.writer.abort();
    end_process(process).await;
    format!("it closed its standard {closed} but went on running, and was stopped")
}

fn describe(exit: std::io::Result<crate::process::Exit>) -> String {
    exit.map_or_else(|error| format!("its exit code is unknown: {error}"), |exit| exit.to_string())
}

async fn end_process(process: &mut AgentProcess) {
    if let Err(error) = process.terminate(STOP_GRACE).await {
        tracing::warn!(%error, "how the agent ended is unknown");
    }
}

/// Gives an agent's output a wider pipe where the system can: a flood then piles up in there, and the agent does not wait
/// for us at every 64 KiB.
fn widen(stdout: &ChildStdout) {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{FcntlArg, fcntl};
        // Refused where the user's pipes are many already; the ordinary size does as well, only slower.
        if let Err(error) = fcntl(stdout, FcntlArg::F_SETPIPE_SZ(PIPE)) {
            tracing::debug!(%error, "the pipe keeps its size");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stdout;
}

/// Reads messages until the stream ends.
async fn read(conn: ConnId, mut stdout: Output, protocol: Arc<Mutex<Protocol>>, max_line: usize, events: Events) {
    let mut splitter = LineSplitter::new(max_line);
    let mut buffer = vec![0; READ_BUFFER];
    let mut pace = Pace::new(buffer.len());
    loop {
        let length = match stdout.read(&mut buffer).await {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => {
                tracing::warn!(%error, "standard output cannot be read");
                break;
            }
        };
        let read_at = Instant::now();
        let mut batch = Batch::new(conn);
        {
            let mut protocol = protocol.lock();
            splitter.feed(&buffer[..length], |line| decode(&mut protocol, &line, max_line, &mut batch));
        }
        let brought = if batch.is_text() { Brought::Text } else { Brought::Other };
        let batch = batch.into_events();
        if !batch.is_empty() && events.send(batch).await.is_err() {
            return;
        }
        if let Some(pause) = pace.pause(read_at, length, brought)
            && let Err(error) = stdout.rest(pause).await
        {
            tracing::warn!(%error, "standard output cannot be read");
            break;
        }
    }
    let rest = splitter.finish();
    let mut last = Batch::new(conn);
    if !rest.is_empty() {
        decode(&mut protocol.lock(), &Line::Whole(&rest), max_line, &mut last);
    }
    let last = last.into_events();
    if !last.is_empty() {
        // As above: without an owner there is nobody to tell.
        let _ = events.send(last).await;
    }
}

/// Adds what a line says to `batch`.
fn decode(protocol: &mut Protocol, line: &Line<'_>, max_line: usize, batch: &mut Batch) {
    match line {
        Line::TooLong { length, head } => {
            tracing::warn!(length, "a line over the limit was dropped");
            protocol.too_long(head, *length, max_line).into_iter().for_each(|message| batch.push(message));
        }
        Line::Whole(line) => match protocol.line(line) {
            Incoming::Chunk(chunk) => batch.chunk(chunk),
            Incoming::Message(message) => batch.push(message),
            Incoming::Array(messages) => {
                skipped(line, "an array of messages");
                for message in messages {
                    batch.push(message);
                }
            }
            Incoming::Noise(kind) => skipped(line, kind),
        },
    }
}

/// Notes a line that is none of the protocol's.
fn skipped(line: &[u8], kind: &str) {
    if !line.trim_ascii().is_empty() {
        let text = String::from_utf8_lossy(&line[..line.len().min(STDERR_LINE)]);
        tracing::info!(%text, kind, "a line was skipped");
    }
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        let result = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        if let Err(error) = result.await {
            tracing::warn!(%error, "standard input cannot be written");
            return Err(error);
        }
        unwritten.fetch_sub(line.len(), Ordering::Relaxed);
    }
    Ok(())
}

/// Keeps the last lines of standard error.
async fn keep_tail(stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end is kept in pieces, so that it cannot grow.
        match (&mut reader).take(STDERR_LINE as u64).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                tracing::info!(%text, "stderr");
                let mut tail = tail.lock();
                if tail.len() == STDERR_LINES {
                    tail.pop_front();
                }
                tail.push_back(text);
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that is a shell script, and what becomes of it after `what` was sent over and over.
    async fn end_of(script: &str, mut what: impl FnMut(&mut Connection)) -> Departure {
        let spec = AgentSpec { command: ["sh", "-c", script].map(str::to_owned).into(), ..AgentSpec::default() };
        let (events, mut batches) = mpsc::channel(QUEUE);
        let mut connection =
            Connection::start(ConnId(1), &spec, Path::new("/"), 1_000, events).expect("a shell can be started");
        let gone = async {
            loop {
                what(&mut connection);
                let Ok(batch) = timeout(Duration::from_millis(20), batches.recv()).await else { continue };
                for event in batch.expect("its end is told") {
                    if let Event::Gone(_, departure) = event {
                        return departure;
                    }
                }
            }
        };
        timeout(Duration::from_secs(30), gone).await.expect("it is gone in time")
    }

    fn how(departure: &Departure) -> &str {
        match departure {
            Departure::Ended { how, .. } => how,
            Departure::NotStarted(problem) => problem,
        }
    }

    #[tokio::test]
    async fn an_agent_that_closes_its_standard_input_is_gone() {
        let speak = |connection: &mut Connection| connection.call(CallId(1), &AgentCall::Initialize);
        let departure = end_of("exec 0<&-; exec sleep 60", speak).await;
        assert!(how(&departure).contains("closed its standard input"), "{departure:?}");
        let departure = end_of("exec 0<&-; sleep 0.2; exit 7", speak).await;
        assert_eq!(how(&departure), "exit code 7");
    }

    #[tokio::test]
    async fn only_an_agent_that_leaves_its_answers_unread_is_taken_for_hung() {
        let answers = |mut left: usize| {
            move |connection: &mut Connection| {
                if left > 0 {
                    left -= 1;
                    let reply = Reply::Content("x".repeat(MAX_UNWRITTEN + 1));
                    connection.reply(ReplyToken::new(ConnId(1), "1"), reply);
                }
            }
        };
        let departure = end_of(&format!("head -c {MAX_UNWRITTEN} | wc -c >&2; exit 7"), answers(1)).await;
        assert_eq!(how(&departure), "exit code 7", "one answer, however long, is sent");
        let departure = end_of("exec sleep 60", answers(2)).await;
        assert_eq!(how(&departure), "it does not read what is sent to it");
    }
}
