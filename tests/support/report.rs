//! What a failing test shows.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::editor::{Editor, strings};

/// How much of the end of each log a failure shows.
const LOG_TAIL_BYTES: usize = 6_000;

/// How long Neovim may take to answer while a failure is being reported.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);

impl Editor {
    /// The screen, the messages, the status, the transcript, every log and what the agents saw.
    pub(super) fn report(&self) -> String {
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

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The end of a log, from the beginning of a line.
fn tail(content: &[u8]) -> String {
    let from = content.len().saturating_sub(LOG_TAIL_BYTES);
    let start = if from == 0 {
        0
    } else {
        content[from..].iter().position(|byte| *byte == b'\n').map_or(from, |at| from + at + 1)
    };
    String::from_utf8_lossy(&content[start..]).trim_end().to_owned()
}
