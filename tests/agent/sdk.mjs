// Drives an agent through the client side of the official SDK, and checks each of its messages by the protocol's JSON Schema.
//
//     node sdk.mjs FOLDER_OF_NODE_MODULES AGENT [ARGUMENTS]
//
// Prints what it saw as one JSON object; fails with the first message that is not valid.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Transform, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, program, ...args] = process.argv.slice(2);
const require = createRequire(join(modules, "node_modules", "x.js"));
const acp = await import(pathToFileURL(join(modules, "node_modules/@agentclientprotocol/sdk/dist/v1/unstable/acp.js")));
const Ajv = require("ajv/dist/2020").default;

const schema = JSON.parse(
  readFileSync(join(modules, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.unstable.json"), "utf8"),
);
// Formats such as uint32 are bounds of numbers, which JSON has anyway.
const ajv = new Ajv({ strict: false, validateFormats: false, discriminator: false });
ajv.addSchema({ $id: "acp", $defs: schema.$defs });
const types = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "fs/read_text_file": "ReadTextFileRequest",
  "fs/write_text_file": "WriteTextFileRequest",
  "terminal/create": "CreateTerminalRequest",
  "terminal/output": "TerminalOutputRequest",
  "terminal/wait_for_exit": "WaitForTerminalExitRequest",
  "terminal/kill": "KillTerminalRequest",
  "terminal/release": "ReleaseTerminalRequest",
};
const answers = {
  initialize: "InitializeResponse",
  "session/new": "NewSessionResponse",
  "session/prompt": "PromptResponse",
  "session/list": "ListSessionsResponse",
  "session/load": "LoadSessionResponse",
  "session/set_mode": "SetSessionModeResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
};

function check(type, value, line) {
  const validate = ajv.getSchema(`acp#/$defs/${type}`);
  if (!validate) throw new Error(`the schema has no ${type}`);
  if (!validate(value)) throw new Error(`no ${type}: ${JSON.stringify(validate.errors)}\n${line}`);
}

const asked = new Map();
const saw = { updates: {}, requests: {}, messages: 0 };

/** Calls `each` with every line that passes. */
function lines(each) {
  let rest = "";
  return new Transform({
    transform(chunk, _encoding, done) {
      rest += chunk;
      const whole = rest.split("\n");
      rest = whole.pop();
      try {
        for (const line of whole.filter((line) => line.trim() !== "")) each(JSON.parse(line), line);
        done(null, chunk);
      } catch (error) {
        console.error(error.message);
        process.exit(1);
      }
    },
  });
}

const agent = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const toAgent = lines((message) => {
  if (message.method && message.id !== undefined) asked.set(message.id, message.method);
});
toAgent.pipe(agent.stdin);
const fromAgent = agent.stdout.pipe(
  lines((message, line) => {
    saw.messages += 1;
    if (message.jsonrpc !== "2.0") throw new Error(`no JSON-RPC: ${line}`);
    if (message.method) {
      if (!types[message.method]) throw new Error(`an unknown method: ${line}`);
      check(types[message.method], message.params, line);
      const [counts, name] =
        message.id === undefined
          ? [saw.updates, message.params.update.sessionUpdate]
          : [saw.requests, message.method];
      counts[name] = (counts[name] ?? 0) + 1;
    } else if (message.error === undefined) {
      check(answers[asked.get(message.id)], message.result, line);
    }
  }),
);

const methods = acp.methods;
const stream = acp.ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(fromAgent));
await acp
  .client({ name: "sdk" })
  .onRequest(methods.client.session.requestPermission, async (context) => {
    const option = context.params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, async (context) => ({
    content: readFileSync(context.params.path, "utf8"),
  }))
  .onRequest(methods.client.fs.writeTextFile, async (context) => {
    writeFileSync(context.params.path, context.params.content);
    return {};
  })
  .onNotification(methods.client.session.update, async () => {})
  .connectWith(stream, async (context) => {
    const cwd = process.cwd();
    const initialized = await context.request(methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
    });
    saw.agent = initialized.agentInfo.name;
    const session = await context.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const { sessionId } = session;
    await context.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
    const answer = await context.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: "Go." }],
    });
    saw.stopReason = answer.stopReason;
    saw.sessions = (await context.request(methods.agent.session.list, {})).sessions.length;
    await context.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  });
agent.kill();
console.log(JSON.stringify(saw));
process.exit(0);
