// Talks to a daemon (the command line in argv) as an editor would, and prints what it saw as one JSON object.
'use strict'
const { spawn } = require('node:child_process')
const {
  AbstractMessageReader, AbstractMessageWriter, CancellationTokenSource, createMessageConnection,
} = require('vscode-jsonrpc/node')

// The library's own streams use Content-Length headers; the daemon's messages are lines.
class LineReader extends AbstractMessageReader {
  constructor (stream) { super(); this.stream = stream }

  listen (callback) {
    let rest = Buffer.alloc(0)
    this.stream.on('data', chunk => {
      rest = Buffer.concat([rest, chunk])
      for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
        callback(JSON.parse(rest.subarray(0, at).toString('utf8')))
        rest = rest.subarray(at + 1)
      }
    })
    this.stream.on('close', () => this.fireClose())
    return { dispose () {} }
  }
}

class LineWriter extends AbstractMessageWriter {
  constructor (stream) { super(); this.stream = stream }

  write (message) {
    return new Promise((resolve, reject) => {
      this.stream.write(JSON.stringify(message) + '\n', 'utf8', error => error ? reject(error) : resolve())
    })
  }

  end () { this.stream.end() }
}

async function failure (promise) {
  try { await promise } catch (error) { return { code: error.code, message: error.message, data: error.data } }
  throw new Error('it did not fail')
}

async function main ([command, ...args]) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const connection = createMessageConnection(new LineReader(child.stdout), new LineWriter(child.stdin))
  const seen = { notifications: [], text: '' }
  const done = new Map()
  connection.onNotification((method, params) => {
    seen.notifications.push(method)
    if (method === 'text_delta') seen.text += params.delta
    if (method === 'done') { done.get(params.prompt_id)?.(params.outcome); done.set(params.prompt_id, params.outcome) }
  })
  const end = id => new Promise(resolve => {
    if (done.has(id)) resolve(done.get(id))
    else done.set(id, resolve)
  })
  connection.listen()

  seen.hello = await connection.sendRequest('hello', { client: { name: 'node', version: process.version } })
  seen.ping = await connection.sendRequest('ping')
  seen.pings = await Promise.all(Array.from({ length: 50 }, () => connection.sendRequest('ping')))
  const prompt = await connection.sendRequest('prompt', { message: 'a\u2028b \ud83d\ude00' })
  seen.outcome = await end(prompt.prompt_id)
  seen.messages = await connection.sendRequest('get_messages', {})
  seen.unknown = await failure(connection.sendRequest('fly'))
  seen.invalid = await failure(connection.sendRequest('set_reasoning', { reasoning: 'very' }))
  seen.positional = await failure(connection.sendRequest('ping', 1, 2))
  const source = new CancellationTokenSource()
  const slow = connection.sendRequest('list_sessions', {}, source.token)
  source.cancel()
  seen.sessions = (await slow).sessions.length
  await connection.sendNotification('set_reasoning', { reasoning: 'low' })
  seen.state = await connection.sendRequest('get_state')
  seen.shutdown = await connection.sendRequest('shutdown')
  seen.exit = await new Promise(resolve => child.on('exit', resolve))
  console.log(JSON.stringify(seen))
}

main(process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
