//! The chapters of the tour and the words that call them.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
use agent_client_protocol_schema::v1::{AvailableCommand, SessionInfoUpdate, SessionUpdate, ToolCallUpdate};
use similar::TextDiff;

use super::disk;
use super::permission::{Action, Decision, Habit};
use super::project::{Mend, Project};
use super::stage::{Played, Stage};
use super::text::{code_block, inline_code};

const WELCOME: &str = include_str!("text/welcome.md");
const MENU: &str = include_str!("text/menu.md");
const GOODBYE: &str = include_str!("text/goodbye.md");
const LONG: &str = include_str!("text/long.md");

/// Lines of a file that the guide quotes.
const QUOTED_LINES: usize = 6;

/// A part of the tour that the user can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chapter {
    Tour,
    Edit,
    Run,
    Ask,
    Long,
    Help,
}

/// Words that call a chapter; the first of each chapter is its slash command.
const WORDS: [(&str, Chapter); 9] = [
    ("edit", Chapter::Edit),
    ("run", Chapter::Run),
    ("ask", Chapter::Ask),
    ("long", Chapter::Long),
    ("again", Chapter::Tour),
    ("tour", Chapter::Tour),
    ("help", Chapter::Help),
    ("menu", Chapter::Help),
    ("?", Chapter::Help),
];

impl Chapter {
    /// The chapter that a prompt asks for: one word, or a slash command with anything after it.
    pub(super) fn of_prompt(prompt: &str) -> Option<Self> {
        let prompt = prompt.trim();
        let word = match prompt.strip_prefix('/') {
            Some(command) => command.split_whitespace().next()?,
            None if prompt == "?" => prompt,
            None => prompt.trim_end_matches(['.', '!', '?']),
        };
        let word = word.trim_matches(['`', '"', '\'']).to_lowercase();
        WORDS.iter().find(|(name, _)| *name == word).map(|&(_, chapter)| chapter)
    }
}

/// The slash commands of the chapters.
pub(super) fn commands() -> Vec<AvailableCommand> {
    [
        ("edit", "Propose an edit, ask, and make it"),
        ("run", "Ask to run a command in the project"),
        ("ask", "Ask for a permission, to try the answers"),
        ("long", "A long answer in Markdown"),
        ("again", "The tour from its beginning"),
        ("help", "What you can say to the guide"),
    ]
    .map(|(name, description)| AvailableCommand::new(name, description))
    .into()
}

/// Answers one prompt.
pub(super) async fn play(stage: &mut Stage<'_>, prompt: &str) -> Played {
    let chapter = match Chapter::of_prompt(prompt) {
        Some(chapter) => chapter,
        // Whatever somebody new says, it is a hello.
        None if !stage.memory.greeted => Chapter::Tour,
        None => return not_understood(stage, prompt).await,
    };
    let project = survey(stage.folder()).await;
    match chapter {
        Chapter::Tour => tour(stage, &project).await,
        Chapter::Edit => edit(stage, &project, None).await,
        Chapter::Run => run(stage, &project).await,
        Chapter::Ask => ask(stage).await,
        Chapter::Long => stage.say(LONG).await,
        Chapter::Help => stage.say(MENU).await,
    }
}

async fn survey(folder: &Path) -> Project {
    let root = folder.to_owned();
    // On a thread of its own: a slow file system must not keep a cancel waiting.
    let survey = tokio::task::spawn_blocking(move || Project::survey(&root));
    survey.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the look at the project failed");
        Project::empty(folder)
    })
}

async fn not_understood(stage: &mut Stage<'_>, prompt: &str) -> Played {
    let said = inline_code(prompt);
    let opening = if prompt.trim().is_empty() {
        "There was no text in that prompt, and text is all I can read.".to_owned()
    } else {
        format!("I read from a script, so {said} is beyond me. A real agent would take it from here.")
    };
    stage.say(&format!("{opening}\n\n{MENU}")).await
}

async fn tour(stage: &mut Stage<'_>, project: &Project) -> Played {
    stage.memory.greeted = true;
    let title = SessionInfoUpdate::new().title("A guided tour".to_owned());
    stage.update(SessionUpdate::SessionInfoUpdate(title)).await?;
    stage
        .think(
            "Somebody is here for the tour. First a greeting and the keys they need. Then I read something of theirs, \
             propose a small edit, and run a command. I must ask before the last two.",
        )
        .await?;
    stage.say(WELCOME).await?;
    let steps = ["Read a file of the project", "Propose an edit and ask", "Run a command and ask"];
    stage.plan(&steps.map(str::to_owned)).await?;
    let known = read(stage, project).await?;
    stage.begin_step(1).await?;
    edit(stage, project, known).await?;
    stage.begin_step(2).await?;
    run(stage, project).await?;
    stage.begin_step(steps.len()).await?;
    stage.say(&format!("{GOODBYE}{MENU}")).await
}

/// Reads the project's showcase; gives its path and text.
async fn read(stage: &mut Stage<'_>, project: &Project) -> Played<Option<(PathBuf, String)>> {
    let Some(path) = project.showcase() else {
        stage.say("I see no text file in this folder, so there is nothing to read. On to the next step.").await?;
        return Ok(None);
    };
    let name = project.name_of(path);
    if !stage.client().fs.read_text_file {
        stage
            .say("This editor does not offer to read files for me (`fs/read_text_file`), so I read from the disk.")
            .await?;
    }
    match stage.read(path, &name, |text| project.line_of_interest(text)).await? {
        Ok(text) => {
            stage.say(&describe(project, path, &name, &text)).await?;
            Ok(Some((path.to_owned(), text)))
        }
        Err(reason) => {
            let said = format!("I could not read {}: {reason}. I go on without it.", inline_code(&name));
            stage.say(&said).await?;
            Ok(None)
        }
    }
}

fn describe(project: &Project, path: &Path, name: &str, text: &str) -> String {
    let language = match path.extension().and_then(|extension| extension.to_str()) {
        Some("py") => "python",
        Some("md") => "markdown",
        Some(extension) if extension.chars().all(|letter| letter.is_ascii_alphanumeric()) => extension,
        _ => "",
    };
    let first = project.line_of_interest(text);
    let from = usize::try_from(first).unwrap_or(1) - 1;
    let quoted = text.lines().skip(from).take(QUOTED_LINES);
    format!(
        "I have read {}, {} lines. From line {first} on it says:\n\n{}\n",
        inline_code(name),
        text.lines().count(),
        code_block(language, quoted)
    )
}

/// Finds something to mend, asks, and does it. `known` is what this turn has read already.
async fn edit(stage: &mut Stage<'_>, project: &Project, known: Option<(PathBuf, String)>) -> Played {
    let Some(mend) = find_mend(stage, project, known).await? else {
        return stage
            .say("I find nothing left to mend here. Undo one of my edits if you want to see it again.\n")
            .await;
    };
    stage.say(&format!("{}\n", mend.about)).await?;
    if !stage.client().fs.write_text_file {
        let said = format!(
            "This editor does not offer to write files for me (`fs/write_text_file`), so I **skip** the edit. \
             It would have been:\n\n{}\n",
            unified_diff(project, &mend)
        );
        return stage.say(&said).await;
    }
    let proposal = stage.propose(&mend).await?;
    let call = proposal.tool_call_id.clone();
    if !permitted(stage, Action::Edit, proposal).await? {
        return Ok(());
    }
    let name = inline_code(&project.name_of(&mend.path));
    let said = match stage.apply(&call, &mend).await? {
        Ok(()) if mend.old.is_none() => format!("Done: {name} is there now.\n"),
        Ok(()) => format!("Done: {name} is changed. If you have it open, one `u` there takes my edit back.\n"),
        Err(reason) => format!("The edit of {name} was **not** made: {reason}. Say `edit`, and I look again.\n"),
    };
    stage.say(&said).await
}

async fn find_mend(
    stage: &mut Stage<'_>,
    project: &Project,
    mut known: Option<(PathBuf, String)>,
) -> Played<Option<Mend>> {
    for path in project.mendable() {
        let text = match known.take_if(|(known, _)| *known == path) {
            Some((_, text)) => Some(text),
            None if disk::exists(&path).await => {
                let name = project.name_of(&path);
                match stage.read(&path, &name, |_| 1).await? {
                    Ok(text) => Some(text),
                    // Its call shows why. It exists, so it must not be created.
                    Err(_) => continue,
                }
            }
            None => None,
        };
        if let Some(mend) = project.mend(&path, text.as_deref()) {
            return Ok(Some(mend));
        }
    }
    Ok(None)
}

fn unified_diff(project: &Project, mend: &Mend) -> String {
    let name = project.name_of(&mend.path);
    let old = mend.old.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(old, &mend.new).unified_diff().header(&name, &name).to_string();
    code_block("diff", diff.lines())
}

/// Runs the project's command, if the client has terminals and the user agrees.
async fn run(stage: &mut Stage<'_>, project: &Project) -> Played {
    let command = project.command();
    let line = inline_code(&command.line());
    if !stage.client().terminal {
        let said = format!(
            "This editor does not offer me a terminal (`terminal/create`), so I **skip** running {line}. \
             You can run it yourself in a `:terminal`.\n"
        );
        return stage.say(&said).await;
    }
    let why = if command.checks_sample { "The project brings its own checks" } else { "A command that only looks" };
    stage.say(&format!("{why}: {line}.\n")).await?;
    let proposal = stage.propose_command(&command).await?;
    let call = proposal.tool_call_id.clone();
    if !permitted(stage, Action::Command, proposal).await? {
        return Ok(());
    }
    let said = match stage.run(&call, &command).await? {
        Ok(ran) => {
            let end = match ran.code {
                Some(code) => format!("It ended with exit code **{code}**"),
                None => "A signal ended it".to_owned(),
            };
            let last_line = match &*ran.last_line {
                "" => " and printed nothing".to_owned(),
                line => format!("; its last line was {}", inline_code(line)),
            };
            let verdict = match (command.checks_sample, ran.code) {
                (true, Some(0)) => " All checks pass.",
                (true, Some(1)) => " A check fails as long as the fraction is upside down: say `edit`.",
                _ => "",
            };
            format!("{end}{last_line}.{verdict}\n")
        }
        Err(reason) => format!("The command did not run: {reason}.\n"),
    };
    stage.say(&said).await
}

/// Asks, unless the user has decided for the whole session. When the answer is no, the call is ended and the user told.
async fn permitted(stage: &mut Stage<'_>, action: Action, proposal: ToolCallUpdate) -> Played<bool> {
    let call = proposal.tool_call_id.clone();
    let no = match stage.memory.habit(action) {
        Habit::Ask => {
            let decision = stage.ask(proposal, &action.options()).await?;
            stage.memory.remember(action, &decision);
            if decision.allows() {
                return Ok(true);
            }
            match decision {
                Decision::Option(_) => "All right, I leave it.\n".to_owned(),
                Decision::Unusable(reason) => {
                    format!("I could not ask ({reason}), so I leave it.\n")
                }
            }
        }
        Habit::Allow => {
            stage.say("You have allowed this for the whole session, so I do not ask again.\n").await?;
            return Ok(true);
        }
        Habit::Refuse => "You have ruled this out for the whole session, so I leave it.\n".to_owned(),
    };
    stage.fail(&call, "declined").await?;
    stage.say(&no).await?;
    Ok(false)
}

/// Asks without wanting anything.
async fn ask(stage: &mut Stage<'_>) -> Played {
    stage
        .say(
            "I am going to ask for something that does nothing, so every answer is safe. Answer from any window with \
             `:AgentChat allow` or `:AgentChat deny`, or let me wait: you can go on working meanwhile.\n",
        )
        .await?;
    let about = "This does nothing at all, whatever you answer.";
    let proposal = stage.propose_nothing("Do nothing, carefully", about).await?;
    let call = proposal.tool_call_id.clone();
    let options = [
        (AllowOnce, "Yes, once"),
        (AllowAlways, "Yes, always"),
        (RejectOnce, "No, not now"),
        (RejectAlways, "No, never"),
    ];
    let decision = stage.ask(proposal, &options).await?;
    if decision.allows() {
        stage.complete(&call).await?;
    } else {
        stage.fail(&call, "declined").await?;
    }
    let said = match decision {
        Decision::Option(AllowOnce) => "You allowed it **once**: next time I would ask again.\n".to_owned(),
        Decision::Option(AllowAlways) => {
            "You allowed it **always**: for an edit or a command I would not ask again in this session.\n".to_owned()
        }
        Decision::Option(RejectOnce) => "You said **no**: I would leave it, and ask again next time.\n".to_owned(),
        Decision::Option(_) => "You said **never**: I would not even ask again in this session.\n".to_owned(),
        Decision::Unusable(reason) => format!("I got no usable answer: {reason}. I take that for a no.\n"),
    };
    stage.say(&said).await
}
