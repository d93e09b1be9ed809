//! A real Neovim with a UI attached.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::deadline::{PATIENCE, poll};
use super::launch;
use super::processes::{self, Process};
use super::rpc::{CallError, Channel};
use super::screen::{Grid, Screen};
use super::setup::Setup;

/// The pause between two round trips of [`Editor::rtt`].
const PROBE_INTERVAL: Duration = Duration::from_millis(5);

/// The longest path from a key press to its effect that [`Editor::rtt`] saw.
#[derive(Debug, Clone, Copy)]
pub struct KeyDelay {
    /// The longest round trip.
    pub max: Duration,
    /// How many round trips were made.
    pub probes: usize,
}

/// A Neovim with this plugin, a UI attached, and folders of its own. See the module documentation of `support`.
pub struct Editor {
    process: Child,
    pub(super) channel: Arc<Channel>,
    pub(super) grid: Arc<Mutex<Grid>>,
    pub(super) home: TempDir,
    pub(super) setup: Setup,
    patience: Cell<Duration>,
}

impl Editor {
    /// Starts Neovim and waits until its start is complete.
    #[track_caller]
    pub fn start(setup: Setup) -> Self {
        let home = launch::home(&setup);
        Self::start_in(home, setup)
    }

    #[track_caller]
    fn start_in(home: TempDir, setup: Setup) -> Self {
        let mut process =
            launch::command(home.path(), &setup).spawn().expect("the Neovim named in $AGENTCHAT_NVIM starts");
        let grid = Arc::new(Mutex::new(Grid::default()));
        let stdin = process.stdin.take().expect("stdin is a pipe");
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let channel = Arc::new(Channel::new(stdin, stdout, Arc::clone(&grid)));
        let patience = Cell::new(PATIENCE);
        let editor = Self { process, channel, grid, home, setup, patience };
        let (columns, rows) = editor.setup.size;
        let options = json!({ "rgb": true, "ext_linegrid": true, "ext_hlstate": true });
        // With --embed Neovim reads its configuration, and answers other calls, only once a UI is there.
        editor.raw_call("nvim_ui_attach", &json!([columns, rows, options]));
        editor.wait_until("Neovim has started", |e| {
            !e.is_blocked() && e.request("nvim_get_vvar", &json!(["vim_did_enter"])) == json!(1)
        });
        editor
    }

    /// Quits, and starts again in the same folders with the same set-up.
    #[track_caller]
    pub fn restart(mut self) -> Self {
        self.quit();
        let home = TempDir::with_prefix("agentchat-test-").expect("a temporary folder");
        let home = std::mem::replace(&mut self.home, home);
        let setup = std::mem::take(&mut self.setup);
        drop(self);
        Self::start_in(home, setup)
    }

    // -- act

    /// Types keys, in the notation of mappings (`<CR>`, `<Esc>`, `<lt>`).
    #[track_caller]
    pub fn input(&self, keys: &str) {
        let mut rest = keys;
        while !rest.is_empty() {
            // Answered also while Neovim waits for a key; the answer says how many bytes fitted into its buffer.
            let taken = self.raw_call("nvim_input", &json!([rest]));
            let taken = taken.as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
            rest = &rest[taken.min(rest.len())..];
        }
    }

    /// Runs an Ex command.
    #[track_caller]
    pub fn command(&self, command: &str) {
        self.request("nvim_command", &json!([command]));
    }

    /// Runs Lua code with `arguments` (a JSON array) as `...`, and gives what it returns.
    #[track_caller]
    pub fn lua(&self, code: &str, arguments: Json) -> Json {
        self.request("nvim_exec_lua", &json!([code, arguments]))
    }

    /// The same for code that may fail: the error is Neovim's text.
    #[track_caller]
    pub fn try_lua(&self, code: &str, arguments: Json) -> Result<Json, String> {
        self.try_request("nvim_exec_lua", &json!([code, arguments]))
    }

    /// Sends a prompt through the plugin's Lua interface.
    #[track_caller]
    pub fn prompt(&self, text: &str) {
        self.lua("require('agentchat').prompt(...)", json!([text]));
    }

    // -- look

    /// The screen as it was last drawn completely.
    #[track_caller]
    pub fn screen(&self) -> Screen {
        let screen = poll(self.patience.get(), || self.grid.lock().unwrap().finished());
        screen.unwrap_or_else(|| self.fail("Neovim did not finish drawing its screen"))
    }

    /// The lines of the transcript in the current tab, else of any transcript; none when there is none. The line that sums
    /// a turn up is left out, with the blank one above it: it tells times.
    #[track_caller]
    pub fn transcript(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for line in self.whole_transcript() {
            if is_summary(&line) {
                lines.pop_if(|last| last.is_empty());
            } else {
                lines.push(line);
            }
        }
        lines
    }

    /// The same with everything.
    #[track_caller]
    pub fn whole_transcript(&self) -> Vec<String> {
        strings(&self.lua(TRANSCRIPT, json!([])))
    }

    /// The same as one text.
    #[track_caller]
    pub fn transcript_text(&self) -> String {
        self.transcript().join("\n")
    }

    /// Whether `wanted` is within one line of a transcript: looked for inside Neovim, so that asking stays cheap while
    /// the transcript is long.
    #[track_caller]
    pub fn transcript_has(&self, wanted: &str) -> bool {
        self.lua(TRANSCRIPT_HAS, json!([wanted])) == json!(true)
    }

    /// `require("agentchat").status()`.
    #[track_caller]
    pub fn status(&self) -> Json {
        self.lua("return require('agentchat').status()", json!([]))
    }

    /// `status().state`.
    #[track_caller]
    pub fn state(&self) -> String {
        self.status()["state"].as_str().unwrap_or_default().to_owned()
    }

    /// What `:messages` shows.
    #[track_caller]
    pub fn messages(&self) -> String {
        let result = self.request("nvim_exec2", &json!(["messages", { "output": true }]));
        result["output"].as_str().unwrap_or_default().to_owned()
    }

    /// The `data` of each `User` autocommand of that name so far, oldest first.
    #[track_caller]
    pub fn events(&self, name: &str) -> Vec<Json> {
        let data = self.lua(EVENTS, json!([name]));
        data.as_array().cloned().unwrap_or_default()
    }

    /// The folder that Neovim was started in.
    pub fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    /// A folder of its `stdpath()`, such as `state`.
    pub fn xdg(&self, name: &str) -> PathBuf {
        self.home.path().join(name).join("nvim")
    }

    /// The bytes of a file of the project, or `None` when there is none.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.project().join(path)).ok()
    }

    // -- wait

    /// Sets how long waits and calls last from now on before they fail; [`PATIENCE`] unless set.
    pub fn set_patience(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// Asks `probe` until it has an answer; `what` names the condition if the deadline passes.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, mut probe: impl FnMut(&Self) -> Option<T>) -> T {
        let answer = poll(self.patience.get(), || probe(self));
        answer.unwrap_or_else(|| self.fail(&format!("not within {:?}: {what}", self.patience.get())))
    }

    /// Waits until `condition` holds.
    #[track_caller]
    pub fn wait_until(&self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        self.wait(what, |editor| condition(editor).then_some(()));
    }

    /// Waits until `wanted` is somewhere on the screen.
    #[track_caller]
    pub fn wait_screen(&self, wanted: &str) -> Screen {
        self.wait(&format!("{wanted:?} on the screen"), |e| Some(e.screen()).filter(|screen| screen.contains(wanted)))
    }

    /// Waits until `wanted` is within one line of a transcript.
    #[track_caller]
    pub fn wait_transcript(&self, wanted: &str) {
        self.wait_until(&format!("{wanted:?} in the transcript"), |e| e.transcript_has(wanted));
    }

    /// Waits until the chat's state is `wanted`.
    #[track_caller]
    pub fn wait_state(&self, wanted: &str) {
        self.wait_until(&format!("the state {wanted}"), |e| e.state() == wanted);
    }

    // -- measure

    /// Runs `act` while another thread asks Neovim for `1` over and over: the longest wait of a key press meanwhile.
    #[track_caller]
    pub fn rtt<T>(&self, act: impl FnOnce(&Self) -> T) -> (T, KeyDelay) {
        let done = AtomicBool::new(false);
        let (channel, patience) = (&self.channel, self.patience.get());
        thread::scope(|scope| {
            let prober = scope.spawn(|| {
                let mut delay = KeyDelay { max: Duration::ZERO, probes: 0 };
                while !done.load(Ordering::Relaxed) || delay.probes == 0 {
                    let asked = Instant::now();
                    channel.call("nvim_eval", &json!(["1"]), patience).expect("Neovim answers the probe");
                    delay = KeyDelay { max: delay.max.max(asked.elapsed()), probes: delay.probes + 1 };
                    thread::sleep(PROBE_INTERVAL);
                }
                delay
            });
            // A failed assertion in `act` must end the prober too.
            let stop = OnDrop(|| done.store(true, Ordering::Relaxed));
            let result = act(self);
            drop(stop);
            (result, prober.join().expect("the probes were answered"))
        })
    }

    // -- end

    /// Quits with `:qall!` and gives the exit status and how long it took.
    #[track_caller]
    pub fn quit(&mut self) -> (ExitStatus, Duration) {
        let asked = Instant::now();
        match self.channel.call("nvim_command", &json!(["qall!"]), self.patience.get()) {
            Ok(_) | Err(CallError::Closed) => {}
            Err(error) => self.fail(&format!(":qall! failed: {error:?}")),
        }
        let status = poll(self.patience.get(), || self.process.try_wait().expect("Neovim's status can be asked"));
        (status.unwrap_or_else(|| self.fail("Neovim did not quit")), asked.elapsed())
    }

    /// Kills Neovim with SIGKILL, which it cannot notice.
    pub fn kill9(&mut self) {
        self.process.kill().expect("Neovim can be killed");
        self.process.wait().expect("Neovim's end can be waited for");
    }

    /// The id of the Neovim process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// All that lives of what this editor started, itself included.
    pub fn processes(&self) -> Vec<Process> {
        processes::with_variable(&launch::marker(self.home.path()))
    }

    /// Waits until nothing lives of what this editor started (so it must have been ended before).
    #[track_caller]
    pub fn wait_gone(&self, patience: Duration) {
        let gone = poll(patience, || self.processes().is_empty().then_some(()));
        assert!(gone.is_some(), "still there after {patience:?}: {:?}", self.processes());
    }

    // -- calls

    /// Calls an API function and gives its result; an error fails the test.
    #[track_caller]
    pub fn request(&self, method: &str, arguments: &Json) -> Json {
        self.try_request(method, arguments)
            .unwrap_or_else(|error| self.fail(&format!("{method}{arguments} failed: {error}")))
    }

    #[track_caller]
    fn try_request(&self, method: &str, arguments: &Json) -> Result<Json, String> {
        // A call made while Neovim waits for a key is not answered until the user acts.
        if poll(self.patience.get(), || (!self.is_blocked()).then_some(())).is_none() {
            self.fail(&format!("{method} cannot be called: Neovim waits for a key"));
        }
        match self.channel.call(method, arguments, self.patience.get()) {
            Ok(result) => Ok(result),
            Err(CallError::Refused(error)) => Err(error),
            Err(error) => self.fail(&format!("{method}{arguments}: {error:?}")),
        }
    }

    /// Whether Neovim waits for a key in a way that leaves calls unanswered (`nvim_get_mode().blocking`).
    #[track_caller]
    pub fn is_blocked(&self) -> bool {
        self.raw_call("nvim_get_mode", &json!([]))["blocking"] == json!(true)
    }

    /// For the calls that Neovim always answers.
    #[track_caller]
    fn raw_call(&self, method: &str, arguments: &Json) -> Json {
        let answer = self.channel.call(method, arguments, self.patience.get());
        answer.unwrap_or_else(|error| self.fail(&format!("{method}: {error:?}")))
    }

    /// Ends the test with `what` and all there is to know.
    #[track_caller]
    pub fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.report())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        poll(Duration::from_secs(5), || {
            let left = self.processes();
            for process in &left {
                processes::kill9(process.pid);
            }
            left.is_empty().then_some(())
        });
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The buffer of the transcript: in the current tab's windows first.
const TRANSCRIPT: &str = r#"
local function is_transcript(buf) return vim.bo[buf].filetype == "agentchat" end
for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local buf = vim.api.nvim_win_get_buf(win)
  if is_transcript(buf) then return vim.api.nvim_buf_get_lines(buf, 0, -1, true) end
end
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if is_transcript(buf) then return vim.api.nvim_buf_get_lines(buf, 0, -1, true) end
end
return {}
"#;

const TRANSCRIPT_HAS: &str = r#"
local wanted = ...
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].filetype == "agentchat" then
    local found = vim.api.nvim_buf_call(buf, function()
      return vim.fn.search([[\C\V]] .. vim.fn.escape(wanted, [[\]]), "cnw")
    end)
    if found > 0 then return true end
  end
end
return false
"#;

const EVENTS: &str = r"
local found = {}
for _, event in ipairs(_G.agentchat_test_events) do
  if event.name == ... then table.insert(found, event.data or vim.NIL) end
end
return found
";

/// Whether a line sums a turn up: its time, and more.
fn is_summary(line: &str) -> bool {
    line.strip_prefix("─ ").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The strings of a JSON array.
pub(super) fn strings(json: &Json) -> Vec<String> {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}
