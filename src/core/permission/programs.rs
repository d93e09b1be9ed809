//! What is known of programs: which run others, and by which options.

use super::shell::Word;

/// Programs that run what their arguments, their input or a remote host say. A rule never allows them.
const RUNNERS: &[&str] = &[
    // Shells, and what they have built in for it.
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "ash",
    "nu",
    "elvish",
    "xonsh",
    "rbash",
    "pwsh",
    "powershell",
    "cmd",
    "command.com",
    "eval",
    "exec",
    "source",
    ".",
    "command",
    "builtin",
    "trap",
    "alias",
    "enable",
    "coproc",
    "call",
    "start",
    "iex",
    "invoke-expression",
    // As somebody else, somewhere else, at another time.
    "sudo",
    "doas",
    "su",
    "runuser",
    "pkexec",
    "gosu",
    "setpriv",
    "runas",
    "chroot",
    "unshare",
    "nsenter",
    "systemd-run",
    "firejail",
    "bwrap",
    "fakeroot",
    "proot",
    "ssh",
    "mosh",
    "rsh",
    "dbus-run-session",
    "at",
    "batch",
    "crontab",
    "wsl",
    // With something set, watched or counted.
    "env",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "timeout",
    "time",
    "stdbuf",
    "script",
    "unbuffer",
    "watch",
    "flock",
    "taskset",
    "chrt",
    "numactl",
    "cpulimit",
    "prlimit",
    "strace",
    "ltrace",
    "gdb",
    "lldb",
    "perf",
    "valgrind",
    "rr",
    "hyperfine",
    "entr",
    "inotifywait",
    "watchexec",
    "nodemon",
    "direnv",
    "dotenv",
    "op",
    "aws-vault",
    "faketime",
    "ld.so",
    "ltrace",
    // For each of many.
    "xargs",
    "parallel",
    "find2perl",
    "rush",
    "foreach",
    // Many programs in one.
    "busybox",
    "toybox",
    "screen",
    "tmux",
    "expect",
    "socat",
    "dtach",
    "zellij",
    // Languages in which a script may start programs, and which are mostly given their script as an argument.
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "emacsclient",
    "nano",
    "osascript",
    "wscript",
    "cscript",
    "mshta",
    "rundll32",
    "regsvr32",
    "msbuild",
    "installutil",
    "forfiles",
    "tclsh",
    "wish",
    "sqlite3",
    "psql",
    "mysql",
    "ftp",
    "sftp",
    "lftp",
    "telnet",
    "less",
    "more",
    "most",
    "man",
    "git-shell",
    "m4",
    "jrunscript",
    "scriptreplay",
];

/// Programs that run what one of their arguments names: a rule allows them only if it says which.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "R",
    "julia",
    "java",
    "ghci",
    "runghc",
    "irb",
    "erl",
    "elixir",
    "iex.bat",
    "guile",
    "racket",
    "sbcl",
    "clojure",
    "groovy",
    "scala",
    "dotnet",
    "swift",
    "ts-node",
    "tsx",
    "npx",
    "bunx",
    "uvx",
    "pipx",
    "uv",
    "poetry",
    "pipenv",
    "hatch",
    "npm",
    "pnpm",
    "yarn",
    "bundle",
    "rake",
    "docker",
    "podman",
    "kubectl",
    "nix",
    "nix-shell",
    "go",
    "cargo",
    "make",
    "gmake",
    "ninja",
    "just",
    "task",
    "gradle",
    "gradlew",
    "mvn",
    "ant",
    "bazel",
    "cmake",
    "meson",
    "scons",
    "tox",
    "nox",
    "git",
    "gh",
    "ld-linux-x86-64.so.2",
];

/// Options and arguments with which a program runs something else, or reads its settings from where the agent wants.
const RUNNING_OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["find"],
        &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"],
    ),
    (
        &["git"],
        &[
            "-c",
            "-C",
            "-O",
            "-u",
            "-x",
            "--config-env",
            "--exec-path",
            "--exec",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--extcmd",
            "--open-files-in-pager",
            "--upload-pack",
            "--receive-pack",
            "--ext-diff",
            "--textconv",
            "--output",
            "--template",
            "--config",
            "--separate-git-dir",
            "--editor",
            "--cmd",
            "--tool",
            "-t",
            "--trailer",
            "foreach",
            "filter-branch",
            "bisect",
            "config",
            "difftool",
            "mergetool",
            "hook",
            "daemon",
            "instaweb",
            "web--browse",
            "maintenance",
            "credential",
        ],
    ),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["rg", "ag"], &["--pre", "--pager", "--hostname-bin", "--search-zip", "-z"]),
    (
        &["tar", "bsdtar", "gtar"],
        &[
            "-I",
            "-F",
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "--use-compress-prog",
        ],
    ),
    (&["sort"], &["--compress-program", "-o", "--output"]),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["scp"], &["-S", "-o"]),
    (&["curl"], &["-K", "--config"]),
    (&["wget"], &["-e", "--execute", "--use-askpass", "--config"]),
    (&["zip"], &["-T", "-TT", "--unzip-command"]),
    (&["split"], &["--filter"]),
    (&["tcpdump"], &["-z"]),
    (&["cargo"], &["--config", "-Z"]),
    (&["go"], &["-exec", "-toolexec", "-vettool"]),
    (&["make", "gmake"], &["--eval", "-f", "--file", "--makefile", "-C", "--directory", "-E"]),
    (&["python", "python2", "python3", "pypy", "pypy3"], &["-c", "-m", "-i"]),
    (&["perl"], &["-e", "-E", "-M", "-m", "-n", "-p", "-x"]),
    (&["ruby"], &["-e", "-r", "-n", "-p"]),
    (
        &["node", "nodejs", "bun", "deno", "tsx", "ts-node"],
        &["-e", "--eval", "-p", "--print", "-r", "--require", "--import", "--loader", "--experimental-loader", "eval"],
    ),
    (&["php"], &["-r", "-B", "-R", "-F", "-E", "-d"]),
    (&["lua", "luajit"], &["-e", "-l"]),
    (&["npm", "pnpm", "yarn"], &["exec", "x", "dlx", "explore", "--script-shell", "--node-options"]),
    (&["cmake"], &["-P", "-E"]),
    (&["gcc", "g++", "cc", "c++", "clang", "clang++"], &["-B", "-wrapper", "-fplugin", "-specs"]),
    (&["rustc"], &["-C", "-Z", "--codegen"]),
    (&["mvn", "gradle", "gradlew", "./gradlew"], &["-I", "--init-script", "-f", "--file"]),
    (&["pip", "pip3"], &["--python", "--global-option", "--install-option"]),
    (&["pytest"], &["-p", "-c", "--rootdir", "--confcutdir", "-o", "--override-ini"]),
    (&["rake", "just", "task"], &["-f", "--rakefile", "--justfile", "--taskfile", "-e", "-r", "--shell"]),
];

/// Words with which a shell begins something that is not a command's name.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac", "in", "select",
    "function", "time", "!", "[[", "coproc", "begin", "end", "and", "or", "not",
];

/// The name of a program without its folder and `.exe`, in lower case: some systems do not tell the cases apart.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    [".exe", ".EXE", ".cmd", ".bat", ".com"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn is_in(table: &[&str], program: &str) -> bool {
    let name = base_name(program);
    table.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the word is the shell's and no program's name.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether the program runs whatever it is told to.
pub(super) fn runs_others(program: &str) -> bool {
    is_in(RUNNERS, program)
}

/// Whether what the program does is all in its arguments. `python3.12` is a Python, too.
pub(super) fn is_interpreter(program: &str) -> bool {
    let name = base_name(program);
    let without_version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    is_in(INTERPRETERS, name) || is_in(INTERPRETERS, without_version)
}

fn options_of(program: &str) -> impl Iterator<Item = &'static str> {
    let name = base_name(program).to_owned();
    let without_version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
    let known = RUNNING_OPTIONS.iter().filter(move |(programs, _)| {
        programs.iter().any(|known| known.eq_ignore_ascii_case(&name) || known.eq_ignore_ascii_case(&without_version))
    });
    known.flat_map(|(_, options)| options.iter().copied())
}

/// Whether this argument makes the program run something else. Short options may be written together (`-xc`), with their value
/// (`-ccore.pager=x`), and long ones may be shortened (`--exec-p`), so whatever may be such an option is one.
pub(super) fn is_running_option(program: &str, argument: &str) -> bool {
    // `make SHELL=…`, `npm_config_…=`
    let sets = is_in(&["make", "gmake"], program) && argument.contains('=');
    sets || options_of(program).any(|option| {
        if let Some(long) = option.strip_prefix("--") {
            let name = argument.split('=').next().unwrap_or(argument);
            name.strip_prefix("--").is_some_and(|name| !name.is_empty() && (long.starts_with(name)))
        } else if option.len() == 2 && option.starts_with('-') {
            let letter = option.as_bytes()[1];
            !argument.starts_with("--")
                && argument.strip_prefix('-').is_some_and(|rest| rest.bytes().any(|b| b == letter))
        } else {
            argument == option || (option.starts_with('-') && argument.starts_with(option))
        }
    })
}

/// Whether any word of a command is such an option, or may be one.
pub(super) fn has_running_option(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    arguments.iter().any(|argument| is_running_option(&program.text, &argument.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_however_they_are_called() {
        assert!(
            runs_others("/usr/bin/env") && runs_others("XARGS") && runs_others("C:\\bin\\bash.exe") && runs_others(".")
        );
        assert!(!runs_others("cat") && !runs_others("./environment"));
        assert!(is_interpreter("python3.12") && is_interpreter("/usr/bin/node") && !is_interpreter("grep"));
    }

    #[test]
    fn options_that_run_something_are_known_however_they_are_written() {
        let running = [
            ("git", "-c"),
            ("git", "-ccore.pager=x"),
            ("git", "--exec-path=x"),
            ("git", "--config-env"),
            ("git", "--upload-p=x"),
            ("find", "-exec"),
            ("find", "-execdir"),
            ("find", "-delete"),
            ("tar", "--use-compress-program=x"),
            ("tar", "-xIf"),
            ("python3.12", "-c"),
            ("python", "-Ic"),
            ("node", "--eval=1"),
            ("make", "SHELL=/tmp/x"),
            ("fd", "-tfx"),
            ("npm", "exec"),
            ("rg", "--pre=x"),
            ("perl", "-e"),
            ("cargo", "--config=x"),
            ("go", "-exec=x"),
        ];
        for (program, option) in running {
            assert!(is_running_option(program, option), "{program} {option}");
        }
        let harmless = [
            ("git", "--short"),
            ("git", "status"),
            ("find", "-name"),
            ("cargo", "test"),
            ("ls", "-c"),
            ("make", "test"),
        ];
        for (program, option) in harmless {
            assert!(!is_running_option(program, option), "{program} {option}");
        }
    }
}
