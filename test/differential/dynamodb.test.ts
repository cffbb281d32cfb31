import { dynamodbHarness } from '../harnesses/dynamodb.ts'
import { differ } from './differ.ts'
import { asOneClient } from './one-client.ts'

differ(asOneClient(dynamodbHarness()))
