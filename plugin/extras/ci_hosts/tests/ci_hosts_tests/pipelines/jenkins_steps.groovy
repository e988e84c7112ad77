// Runs a step of a shared library: the steps that it calls are recorded, and `sh` starts a shell, as
// a Jenkins agent does. Arguments: the library step, its options as JSON, the steps that are missing.
import groovy.json.JsonOutput
import groovy.json.JsonSlurper

class Stopped extends RuntimeException {
    Stopped(String text) { super(text) }
}

def (path, options, missing) = args
List calls = []
Map variables = [:]
Script step = new GroovyShell().parse(new File(path))
Map steps = [
    withEnv: { List given, Closure body ->
        given.each { text -> variables.put(*text.toString().split('=', 2)) }
        return body()
    },
    lock: { Map given, Closure body -> body() },
    sh: { Map given ->
        File script = File.createTempFile('jenkins', '.sh')
        script.text = given.script
        ProcessBuilder shell = new ProcessBuilder('sh', '-xe', script.path).inheritIO()
        shell.environment().putAll(variables)
        return shell.start().waitFor()
    },
    fileExists: { String name -> new File(name).exists() },
    error: { String text -> throw new Stopped(text) },
]
['junit', 'archiveArtifacts', 'publishHTML', 'unstable', 'echo'].each { name ->
    steps[name] = { Object given ->
        if (name in missing.split(',')) {
            throw new NoSuchMethodError("No such DSL method '${name}' found among steps")
        }
    }
}
steps.each { name, body ->
    step.metaClass[name] = { Object... given ->
        calls << [step: name, given: given.findAll { !(it instanceof Closure) }*.toString()]
        return body(*given)
    }
}
String result = 'SUCCESS'
try {
    step.call(new JsonSlurper().parseText(options) as Map)
} catch (Stopped stopped) {
    result = 'FAILURE'
}
if (result == 'SUCCESS' && calls.any { it.step == 'unstable' }) {
    result = 'UNSTABLE'
}
println JsonOutput.toJson([result: result, calls: calls])
