//! A real Neovim with a UI attached.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::deadline::poll;
use super::processes::{self, Process};
use super::rpc::{CallError, Channel};
use super::screen::{Grid, Screen};
use super::setup::Setup;

/// In the environment of all that an editor starts, so that it can be found again.
const MARKER: &str = "AGENTCHAT_TEST_HOME";

/// How much of the end of each log a failure shows.
const LOG_TAIL_BYTES: usize = 6_000;

/// How long Neovim may take to answer while a failure is being reported.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);

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
    channel: Arc<Channel>,
    grid: Arc<Mutex<Grid>>,
    home: TempDir,
    setup: Setup,
}

impl Editor {
    /// Starts Neovim and waits until its start is complete.
    #[track_caller]
    pub fn start(setup: Setup) -> Self {
        let home = tempfile::Builder::new().prefix("agentchat-test-").tempdir().expect("a temporary folder");
        for folder in ["project", "config/nvim", "data", "state", "cache", "run", "tmp"] {
            fs::create_dir_all(home.path().join(folder)).expect("a folder in the test's home");
        }
        for (path, content) in &setup.files {
            let path = home.path().join("project").join(path);
            fs::create_dir_all(path.parent().expect("a file in a folder")).expect("the folder of a project file");
            fs::write(path, content).expect("a project file");
        }
        fs::write(home.path().join("config/nvim/init.lua"), init_lua(&setup)).expect("init.lua");
        Self::start_in(home, setup)
    }

    #[track_caller]
    fn start_in(home: TempDir, setup: Setup) -> Self {
        let mut process = command(home.path(), &setup).spawn().expect("the Neovim named in $AGENTCHAT_NVIM starts");
        let grid = Arc::new(Mutex::new(Grid::default()));
        let stdin = process.stdin.take().expect("stdin is a pipe");
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let channel = Arc::new(Channel::new(stdin, stdout, Arc::clone(&grid)));
        let editor = Self { process, channel, grid, home, setup };
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
        let screen = poll(self.setup.patience, || self.grid.lock().unwrap().finished());
        screen.unwrap_or_else(|| self.fail("Neovim did not finish drawing its screen"))
    }

    /// The lines of the transcript in the current tab, else of any transcript; none when there is none.
    #[track_caller]
    pub fn transcript(&self) -> Vec<String> {
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

    /// Asks `probe` until it has an answer; `what` names the condition if the deadline passes.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, mut probe: impl FnMut(&Self) -> Option<T>) -> T {
        let answer = poll(self.setup.patience, || probe(self));
        answer.unwrap_or_else(|| self.fail(&format!("not within {:?}: {what}", self.setup.patience)))
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
        let (channel, patience) = (&self.channel, self.setup.patience);
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
        match self.channel.call("nvim_command", &json!(["qall!"]), self.setup.patience) {
            Ok(_) | Err(CallError::Closed) => {}
            Err(error) => self.fail(&format!(":qall! failed: {error:?}")),
        }
        let status = poll(self.setup.patience, || self.process.try_wait().expect("Neovim's status can be asked"));
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
        processes::with_variable(&format!("{MARKER}={}", self.home.path().display()))
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
        if poll(self.setup.patience, || (!self.is_blocked()).then_some(())).is_none() {
            self.fail(&format!("{method} cannot be called: Neovim waits for a key"));
        }
        match self.channel.call(method, arguments, self.setup.patience) {
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
        let answer = self.channel.call(method, arguments, self.setup.patience);
        answer.unwrap_or_else(|error| self.fail(&format!("{method}: {error:?}")))
    }

    /// Ends the test with `what` and all there is to know.
    #[track_caller]
    pub fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.report())
    }

    fn report(&self) -> String {
        let mut report = format!("--- screen\n{}\n", self.grid.lock().unwrap().as_it_is());
        let _ = writeln!(report, "--- messages, state and transcript\n{}", self.report_from_inside());
        for path in files_below(self.home.path()) {
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_log = extension == Some("log") || path.ends_with("state/nvim/log");
            let content = fs::read(&path).unwrap_or_default();
            if is_log && !content.is_empty() {
                let name = path.strip_prefix(self.home.path()).unwrap_or(&path);
                let _ = writeln!(report, "--- {}\n{}", name.display(), tail(&content));
            }
        }
        for agent in &self.setup.agents {
            let _ = writeln!(report, "--- agent\n{}", agent.report());
        }
        report
    }

    fn report_from_inside(&self) -> String {
        match self.channel.call("nvim_get_mode", &json!([]), REPORT_PATIENCE) {
            Ok(mode) if mode["blocking"] == json!(false) => {}
            other => return format!("cannot be asked for: {other:?}"),
        }
        match self.channel.call("nvim_exec_lua", &json!([REPORT, []]), REPORT_PATIENCE) {
            Ok(lines) => strings(&lines).join("\n"),
            Err(error) => format!("cannot be asked for: {error:?}"),
        }
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

const REPORT: &str = r#"
local lines = vim.split(vim.api.nvim_exec2("messages", { output = true }).output, "\n")
if package.loaded.agentchat then
  table.insert(lines, vim.inspect(require("agentchat").status()))
end
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].filetype == "agentchat" then
    table.insert(lines, "transcript in buffer " .. buf .. ":")
    vim.list_extend(lines, vim.api.nvim_buf_get_lines(buf, -200, -1, false))
  end
end
return lines
"#;

fn init_lua(setup: &Setup) -> String {
    let config = serde_json::to_string(&setup.config).expect("a configuration is JSON");
    format!(
        r#"
vim.opt.runtimepath:prepend([==[{root}]==])
vim.g.agentchat = vim.json.decode([==[{config}]==], {{ luanil = {{ object = true, array = true }} }})
_G.agentchat_test_events = {{}}
vim.api.nvim_create_autocmd("User", {{
  pattern = "AgentChat*",
  callback = function(event)
    table.insert(_G.agentchat_test_events, {{ name = event.match, data = event.data }})
  end,
}})
{init}
"#,
        root = env!("CARGO_MANIFEST_DIR"),
        init = setup.init,
    )
}

fn command(home: &Path, setup: &Setup) -> Command {
    let Some(nvim) = std::env::var_os("AGENTCHAT_NVIM") else {
        panic!("$AGENTCHAT_NVIM names no Neovim: run `make test`, or `scripts/test` with arguments of cargo test");
    };
    let mut command = Command::new(nvim);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["XDG_", "NVIM", "VIM", "AGENTCHAT_"].iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    let stderr = fs::File::create(home.join("stderr.log")).expect("a file for Neovim's stderr");
    command
        .args(["--embed", "-i", "NONE"])
        .args(&setup.arguments)
        .current_dir(home.join("project"))
        .env(MARKER, home)
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TMPDIR", home.join("tmp"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_STATE_HOME", home.join("state"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_RUNTIME_DIR", home.join("run"))
        .env("XDG_CONFIG_DIRS", home.join("none"))
        .env("XDG_DATA_DIRS", home.join("none"))
        .envs(setup.environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr);
    command
}

fn strings(json: &Json) -> Vec<String> {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The end of a log, from the beginning of a line.
pub(super) fn tail(content: &[u8]) -> String {
    let from = content.len().saturating_sub(LOG_TAIL_BYTES);
    let start = if from == 0 {
        0
    } else {
        content[from..].iter().position(|byte| *byte == b'\n').map_or(from, |at| from + at + 1)
    };
    String::from_utf8_lossy(&content[start..]).trim_end().to_owned()
}
