--- What the plugin and the helper must agree on.

return {
  --- The plugin's version; the helper's must be the same.
  plugin = "0.1.0",
  --- The version of the calls between Lua and the helper (doc/architecture.md).
  interface = 7,
}
