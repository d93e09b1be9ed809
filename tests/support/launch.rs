//! Starting a Neovim that knows nothing of the user's.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::setup::Setup;

/// In the environment of all that an editor starts, so that it can be found again.
const MARKER: &str = "AGENTCHAT_TEST_HOME";

/// The folders that a Neovim lives in, with the project's files and the user's `init.lua`.
pub fn home(setup: &Setup) -> TempDir {
    let home = tempfile::Builder::new().prefix("agentchat-test-").tempdir().expect("a temporary folder");
    for folder in ["project", "config/nvim", "data", "state", "cache", "run", "tmp"] {
        fs::create_dir_all(home.path().join(folder)).expect("a folder in the test's home");
    }
    for (path, content) in &setup.files {
        let path = home.path().join("project").join(path);
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("the folder of a project file");
        fs::write(path, content).expect("a project file");
    }
    fs::write(home.path().join("config/nvim/init.lua"), init_lua(setup)).expect("init.lua");
    home
}

/// The entry in the environment that all processes started from `home` have.
pub fn marker(home: &Path) -> String {
    format!("{MARKER}={}", home.display())
}

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

/// The command that starts Neovim in `home`, with pipes for its stdin and stdout.
pub fn command(home: &Path, setup: &Setup) -> Command {
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
