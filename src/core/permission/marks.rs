//! What is dangerous about a call, said in a few words each. A table; every entry has a test.
//!
//! Marks are no gate: they are for the eyes of whoever answers, and they keep an answer that was given once from being taken
//! for a call that is more dangerous. They err towards warning.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use super::programs::base_name;
use super::shell::{self, Fragment};

/// Something dangerous about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It concerns a path that is not in the project's folder.
    Outside,
    /// It removes files.
    Deletes,
    /// It throws away changes that are not committed.
    DiscardsChanges,
    /// It overwrites or removes what others have pushed.
    ForcePushes,
    /// It puts something where others see it.
    Publishes,
    /// It runs a program that comes from the network at that moment.
    RunsDownload,
    /// It runs what another program prints.
    RunsOutput,
    /// It acts as another user.
    OtherUser,
    /// It names a file or variable that holds secrets.
    Secrets,
    /// It sends data to another machine.
    SendsData,
    /// It writes to a disk past its file system.
    OverwritesDisk,
    /// It lets others read, write or own files.
    ChangesRights,
    /// It ends processes or the machine.
    StopsProcesses,
    /// It installs software.
    Installs,
    /// It changes what runs by itself: hooks, start files, services.
    RunsLater,
    /// It has signs that cannot be seen, or turn the text around.
    Invisible,
    /// It is too long or too nested to be looked through.
    Unclear,
}

impl Mark {
    /// The mark in a few words.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Outside => "outside the workspace",
            Self::Deletes => "deletes files",
            Self::DiscardsChanges => "discards uncommitted changes",
            Self::ForcePushes => "force pushes",
            Self::Publishes => "publishes",
            Self::RunsDownload => "runs a download",
            Self::RunsOutput => "runs what another program prints",
            Self::OtherUser => "runs as another user",
            Self::Secrets => "touches secrets",
            Self::SendsData => "sends data out",
            Self::OverwritesDisk => "overwrites a disk",
            Self::ChangesRights => "changes access rights",
            Self::StopsProcesses => "stops processes",
            Self::Installs => "installs software",
            Self::RunsLater => "changes what runs by itself",
            Self::Invisible => "contains invisible characters",
            Self::Unclear => "too complex to check",
        }
    }
}

/// The marks of a command line.
pub fn of_command(line: &str) -> BTreeSet<Mark> {
    let mut marks = BTreeSet::new();
    if line.chars().any(is_invisible) {
        marks.insert(Mark::Invisible);
    }
    let Some(fragments) = shell::fragments(line) else {
        marks.insert(Mark::Unclear);
        return marks;
    };
    for (place, fragment) in fragments.iter().enumerate() {
        mark_fragment(fragment, &mut marks);
        let is_fed = place.checked_sub(1).is_some_and(|before| fragments[before].is_piped);
        if is_fed && takes_a_script(fragment) {
            let loads = fragments[..place].iter().any(downloads);
            marks.insert(if loads { Mark::RunsDownload } else { Mark::RunsOutput });
        }
    }
    // `sh -c "$(curl …)"`, `eval $(…)`, `bash <(curl …)`
    let runs_text = |fragment: &Fragment| {
        takes_a_script(fragment)
            || fragment.words.iter().any(|word| matches!(base_name(&word.text), "eval" | "source" | "."))
    };
    if fragments.iter().any(runs_text) && fragments.iter().any(downloads) {
        marks.insert(Mark::RunsDownload);
    }
    marks
}

/// The marks of a path, apart from whether it lies outside.
pub fn of_path(path: &Path, is_written: bool) -> BTreeSet<Mark> {
    let text = path.to_string_lossy().replace('\\', "/").to_lowercase();
    let mut marks = BTreeSet::new();
    if is_secret(&text) {
        marks.insert(Mark::Secrets);
    }
    if is_written && runs_by_itself(&text) {
        marks.insert(Mark::RunsLater);
    }
    if text.chars().any(is_invisible) {
        marks.insert(Mark::Invisible);
    }
    marks
}

/// Signs that are not seen, or change the direction of what is: what is read would not be what is done.
const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
        || (c.is_ascii_control() && !matches!(c, '\n' | '\t'))
}

/// The names of files and folders that hold secrets, in lower case. `/` at the end: everything in that folder.
const SECRET_PLACES: &[&str] = &[
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".kube/",
    ".docker/config.json",
    ".config/gcloud/",
    ".config/gh/",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".terraform.d/",
    ".password-store/",
    ".htpasswd",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/proc/self/environ",
    "keychains/",
    "login data",
    "cookies.sqlite",
    "key4.db",
    "logins.json",
    ".bash_history",
    ".zsh_history",
];

/// Parts of names that tell of secrets, in lower case.
const SECRET_NAMES: &[&str] =
    &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "secrets", "service-account", "private_key"];
const SECRET_ENDINGS: &[&str] =
    &[".env", ".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx", ".asc", ".ppk", ".tfstate"];
/// Examples are no secrets.
const EXAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist"];

fn is_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if EXAMPLES.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let is_env = name == ".env" || name.starts_with(".env.");
    let ends_with = |endings: &[&str]| endings.iter().any(|end| name.ends_with(end));
    is_env
        || SECRET_PLACES.iter().any(|place| path.contains(place) || path.ends_with(place.trim_end_matches('/')))
        || SECRET_NAMES.iter().any(|part| name.contains(part) && !ends_with(&[".pub"]))
        || ends_with(SECRET_ENDINGS)
}

/// Where programs are started from without being asked for, in lower case.
const RUN_BY_THEMSELVES: &[&str] = &[
    ".git/hooks/",
    ".git/config",
    ".githooks/",
    ".husky/",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    "config.fish",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".gitconfig",
    ".config/git/config",
    ".ssh/config",
    ".ssh/authorized_keys",
    ".ssh/rc",
    "autostart/",
    "launchagents/",
    "launchdaemons/",
    "systemd/",
    "/etc/cron",
    "cron.d/",
    "/etc/profile",
    "/etc/rc",
    ".github/workflows/",
    ".gitlab-ci.yml",
    ".cargo/config",
    ".npmrc",
    ".pre-commit-config.yaml",
];

fn runs_by_itself(path: &str) -> bool {
    RUN_BY_THEMSELVES.iter().any(|place| path.contains(place))
}

fn downloads(fragment: &Fragment) -> bool {
    names(fragment).any(|name| {
        matches!(name, "curl" | "wget" | "fetch" | "aria2c" | "http" | "https" | "iwr" | "irm" | "lwp-request")
    })
}

/// The names of the programs that a fragment may run: the first word, and what comes after programs that run others.
fn names(fragment: &Fragment) -> impl Iterator<Item = &str> {
    let all = if fragment.is_certain() { 1 } else { fragment.words.len() };
    fragment.words.iter().take(all).map(|word| base_name(&word.text))
}

/// Whether the fragment is a shell or a language that would run what it is fed with.
fn takes_a_script(fragment: &Fragment) -> bool {
    const SHELLS: &[&str] = &[
        "sh",
        "bash",
        "dash",
        "zsh",
        "fish",
        "ksh",
        "ash",
        "pwsh",
        "powershell",
        "iex",
        "cmd",
        "python",
        "python3",
        "perl",
        "ruby",
        "node",
        "php",
        "eval",
    ];
    names(fragment).any(|name| SHELLS.iter().any(|shell| shell.eq_ignore_ascii_case(name)))
}

/// Programs by what running them at all means.
const BY_PROGRAM: &[(Mark, &[&str])] = &[
    (
        Mark::Deletes,
        &["rm", "rmdir", "unlink", "shred", "del", "erase", "rd", "srm", "trash", "remove-item", "truncate"],
    ),
    (Mark::OtherUser, &["sudo", "doas", "su", "runuser", "pkexec", "gosu", "runas"]),
    (
        Mark::OverwritesDisk,
        &["mkfs", "fdisk", "parted", "sfdisk", "wipefs", "mkswap", "diskutil", "format", "blkdiscard"],
    ),
    (Mark::ChangesRights, &["chmod", "chown", "chgrp", "setfacl", "icacls", "takeown", "chattr"]),
    (
        Mark::StopsProcesses,
        &[
            "kill",
            "pkill",
            "killall",
            "taskkill",
            "shutdown",
            "reboot",
            "halt",
            "poweroff",
            "init",
            "stop-process",
            "fuser",
        ],
    ),
    (
        Mark::SendsData,
        &[
            "scp", "sftp", "ftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "rclone", "mail", "sendmail",
            "ssh",
        ],
    ),
    (Mark::RunsLater, &["crontab", "at", "systemctl", "launchctl", "schtasks", "update-rc.d", "chkconfig"]),
];

/// Programs with a word among their arguments that makes them dangerous: the program, any of these words, the mark.
const BY_ARGUMENT: &[(&str, &[&str], Mark)] = &[
    ("find", &["-delete"], Mark::Deletes),
    ("git", &["rm", "clean"], Mark::Deletes),
    ("git", &["--hard", "restore", "clean"], Mark::DiscardsChanges),
    ("git", &["push"], Mark::Publishes),
    ("git", &["filter-branch", "filter-repo"], Mark::ForcePushes),
    ("npm", &["publish", "unpublish"], Mark::Publishes),
    ("pnpm", &["publish"], Mark::Publishes),
    ("yarn", &["publish"], Mark::Publishes),
    ("cargo", &["publish", "yank"], Mark::Publishes),
    ("gem", &["push"], Mark::Publishes),
    ("twine", &["upload"], Mark::Publishes),
    ("docker", &["push"], Mark::Publishes),
    ("podman", &["push"], Mark::Publishes),
    ("gh", &["create", "merge", "edit", "delete", "upload", "api"], Mark::Publishes),
    ("kubectl", &["apply", "create", "replace", "scale", "drain"], Mark::Publishes),
    ("terraform", &["apply", "destroy", "import"], Mark::Publishes),
    ("kubectl", &["delete"], Mark::Deletes),
    ("docker", &["rm", "rmi", "prune"], Mark::Deletes),
    ("podman", &["rm", "rmi", "prune"], Mark::Deletes),
    ("aws", &["rm", "rb", "delete-object", "terminate-instances"], Mark::Deletes),
    ("npm", &["install", "i", "add", "ci"], Mark::Installs),
    ("pnpm", &["install", "i", "add"], Mark::Installs),
    ("yarn", &["add", "install"], Mark::Installs),
    ("pip", &["install"], Mark::Installs),
    ("pip3", &["install"], Mark::Installs),
    ("uv", &["add", "install"], Mark::Installs),
    ("pipx", &["install", "run"], Mark::Installs),
    ("cargo", &["install"], Mark::Installs),
    ("go", &["install"], Mark::Installs),
    ("gem", &["install"], Mark::Installs),
    ("brew", &["install", "upgrade"], Mark::Installs),
    ("apt", &["install", "upgrade", "full-upgrade"], Mark::Installs),
    ("apt-get", &["install", "upgrade", "dist-upgrade"], Mark::Installs),
    ("dnf", &["install", "upgrade"], Mark::Installs),
    ("yum", &["install", "update"], Mark::Installs),
    ("pacman", &["-S", "-Syu", "-U"], Mark::Installs),
    ("apk", &["add"], Mark::Installs),
    ("wget", &["--post-data", "--post-file", "--body-data", "--body-file"], Mark::SendsData),
    (
        "curl",
        &[
            "-d",
            "--data",
            "--data-raw",
            "--data-binary",
            "--data-urlencode",
            "--json",
            "-F",
            "--form",
            "-T",
            "--upload-file",
            "-X",
        ],
        Mark::SendsData,
    ),
];

fn mark_fragment(fragment: &Fragment, marks: &mut BTreeSet<Mark>) {
    // Of what may run another program, each word may be its name.
    let starts = if fragment.is_certain() { 1 } else { fragment.words.len() };
    for start in 0..starts {
        mark_program(&fragment.words[start..].iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), marks);
    }
    for (place, word) in fragment.words.iter().enumerate() {
        let is_written = place > 0 && fragment.words[place - 1].text == ">"
            || matches!(fragment.program(), "cp" | "mv" | "tee" | "install" | "ln" | "sed" | "dd");
        let value = word.text.rsplit('=').next().unwrap_or(&word.text);
        marks.extend(of_path(Path::new(value), is_written));
        if is_written && value.starts_with("/dev/") && !is_harmless_device(value) {
            marks.insert(Mark::OverwritesDisk);
        }
        if names_a_secret_variable(&word.text) {
            marks.insert(Mark::Secrets);
        }
    }
}

fn is_harmless_device(path: &str) -> bool {
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/dev/zero"]
        .iter()
        .any(|known| path.starts_with(known))
}

/// `$GITHUB_TOKEN` and the like.
fn names_a_secret_variable(word: &str) -> bool {
    let upper = word.to_uppercase();
    word.contains('$')
        && ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE"]
            .iter()
            .any(|part| upper.contains(part))
}

fn mark_program(words: &[&str], marks: &mut BTreeSet<Mark>) {
    let Some((program, arguments)) = words.split_first() else { return };
    let name = base_name(program).to_lowercase();
    for (mark, programs) in BY_PROGRAM {
        if programs.iter().any(|known| *known == name || (*known == "mkfs" && name.starts_with("mkfs."))) {
            marks.insert(*mark);
        }
    }
    for (known, wanted, mark) in BY_ARGUMENT {
        let is_wanted = |argument: &&str| {
            wanted.iter().any(|wanted| {
                *argument == *wanted
                    || (wanted.starts_with("--")
                        && argument.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('=')))
                    || (wanted.len() == 2 && wanted.starts_with('-') && name == "curl" && argument.starts_with(wanted))
            })
        };
        if *known == name && arguments.iter().any(is_wanted) {
            marks.insert(*mark);
        }
    }
    if name == "git" {
        mark_git(arguments, marks);
    }
    if name == "dd" && arguments.iter().any(|argument| argument.starts_with("of=/dev/")) {
        marks.insert(Mark::OverwritesDisk);
    }
}

fn mark_git(arguments: &[&str], marks: &mut BTreeSet<Mark>) {
    let has = |wanted: &str| arguments.contains(&wanted);
    if has("push") {
        let forces = |argument: &&str| {
            argument.starts_with("--force")
                || matches!(*argument, "--mirror" | "--delete" | "--prune")
                || (argument.starts_with('-') && !argument.starts_with("--") && argument.contains(['f', 'd']))
                // `+branch` forces, `:branch` deletes.
                || argument.starts_with(['+', ':'])
        };
        if arguments.iter().any(forces) {
            marks.insert(Mark::ForcePushes);
        }
    }
    // `git checkout -- file`, `git checkout -f`, `git stash drop`
    let discards = has("checkout") && (has("--") || has("-f") || has("--force") || has("."))
        || has("switch") && (has("-f") || has("--discard-changes"))
        || has("stash") && (has("drop") || has("clear"))
        || has("branch") && (has("-D") || has("--force"));
    if discards {
        marks.insert(Mark::DiscardsChanges);
    }
}
