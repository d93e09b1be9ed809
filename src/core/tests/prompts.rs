use super::world::{CHAT, World};
use crate::core::effect::{Effect, GatherJob};
use crate::core::event::{Event, UserAction};
use crate::core::ids::PromptId;
use crate::core::message::{AgentCall, Answer, SessionCapabilities};
use crate::core::prompt::{Found, PromptBlock, PromptCapabilities, PromptPart, Source};

fn mentioning(world: &mut World, id: u64) {
    let source = Source::File { path: "/p/a".into(), lines: None };
    let parts = vec![PromptPart::Text("see ".into()), PromptPart::Mention { label: "@a".into(), source }];
    world.user(UserAction::Prompt { chat: CHAT, id: PromptId(id), parts });
}

fn gathers(world: &World) -> Vec<&GatherJob> {
    let jobs = world.effects.iter().filter_map(|effect| match effect {
        Effect::Gather(job) => Some(job),
        _ => None,
    });
    jobs.collect()
}

fn found(world: &mut World, id: u64) {
    world.happen(Event::Gathered(CHAT, PromptId(id), vec![Found::Text("A".into())]));
}

fn sent(world: &World) -> Vec<&[PromptBlock]> {
    let blocks = world.effects.iter().filter_map(|effect| match effect {
        Effect::Call(_, _, AgentCall::Prompt { blocks, .. }) => Some(blocks.as_slice()),
        _ => None,
    });
    blocks.collect()
}

#[test]
fn what_a_prompt_mentions_is_looked_up_before_it_is_sent() {
    let mut world = World::new();
    world.open(CHAT);
    mentioning(&mut world, 1);
    world.happen(Event::Spawned(super::world::CONN));
    let takes = PromptCapabilities { image: false, embedded_context: true };
    world.answer(
        "initialize",
        Answer::Initialized {
            protocol_version: 1,
            agent_name: None,
            takes,
            can: SessionCapabilities::default(),
            sign_in: Vec::new(),
        },
    );
    assert_eq!(gathers(&world).len(), 0);
    world.created("s");
    assert_eq!(gathers(&world).len(), 1);
    assert_eq!(gathers(&world)[0].takes, takes);
    assert_eq!(sent(&world).len(), 0);
    found(&mut world, 1);
    let resource = PromptBlock::Resource { uri: "file:///p/a".into(), text: "A".into() };
    assert_eq!(sent(&world), [&[PromptBlock::Text("see ".into()), resource][..]]);
    assert_eq!(world.transcript(), ["user: see @a"]);
    found(&mut world, 1);
    assert_eq!(sent(&world).len(), 1, "a second answer changes nothing");
}

#[test]
fn a_prompt_that_is_taken_back_meanwhile_is_not_sent_and_the_next_one_is() {
    let mut world = World::ready();
    mentioning(&mut world, 1);
    mentioning(&mut world, 2);
    assert_eq!(gathers(&world).len(), 1);
    world.user(UserAction::TakeBack(CHAT, PromptId(1)));
    assert_eq!(world.taken_back(), ["see @a"]);
    found(&mut world, 1);
    assert_eq!(sent(&world).len(), 0);
    assert_eq!(gathers(&world).last().map(|job| job.prompt), Some(PromptId(2)));
    found(&mut world, 2);
    assert_eq!(sent(&world).len(), 1);
}

#[test]
fn a_cancel_meanwhile_gives_the_prompt_back() {
    let mut world = World::ready();
    mentioning(&mut world, 1);
    world.user(UserAction::Cancel(CHAT));
    assert_eq!(world.taken_back(), ["see @a"]);
    found(&mut world, 1);
    assert_eq!(world.calls(), [""; 0]);
    world.prompt(2, "plain");
    assert_eq!(sent(&world).len(), 1);
}
